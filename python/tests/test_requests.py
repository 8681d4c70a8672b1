"""What goes out for what was given."""

import array
import gzip
import io
import pathlib

import pytest

import mimus


def sent(response):
    """What the origin says back."""
    return response.json()


def fields(response, name):
    return [value for key, value in sent(response)["headers"] if key.lower() == name.lower()]


def test_every_method_goes_out_as_itself(client, origin):
    for method in ("get", "post", "put", "patch", "delete", "options"):
        response = getattr(client, method)(origin.url("/anything"))
        assert sent(response)["method"] == method.upper()
    assert client.head(origin.url("/anything")).content == b""


def test_unknown_methods_are_sent_as_they_are(client, origin):
    assert sent(client.request("PROPFIND", origin.url("/anything")))["method"] == "PROPFIND"
    assert sent(client.request("Brew", origin.url("/anything")))["method"] == "Brew"
    # Those of the registry are upper-case whatever the hand that wrote them.
    assert sent(client.request("patch", origin.url("/anything")))["method"] == "PATCH"
    with pytest.raises(ValueError):
        client.request("NO GOOD", origin.url("/anything"))


def test_parameters(client, origin):
    response = client.get(origin.url("/get?a=0"), params={"a": 1, "b": ["x", "y z"], "c": None, "d": True})
    assert response.url.endswith("/get?a=0&a=1&b=x&b=y+z&d=true")
    assert client.get(origin.url("/get"), params=[("k", "ü"), ("k", b"2")]).url.endswith("/get?k=%C3%BC&k=2")
    assert client.get(origin.url("/get"), params="raw=%7E&b").url.endswith("/get?raw=%7E&b")


def test_client_parameters_and_base_url(origin):
    with mimus.Client(base_url=origin.url("/anything/"), params={"key": "1"}) as client:
        assert client.get("x", params={"y": "2"}).url == origin.url("/anything/x?key=1&y=2")


def test_headers_keep_order_case_and_duplicates(client, origin):
    pairs = [("X-B", "1"), ("x-a", b"2"), ("X-b", "3"), ("X-Num", 4)]
    response = client.get(origin.url("/get"), headers=pairs)
    ours = [pair for pair in sent(response)["headers"] if pair[0].lower().startswith("x-")]
    assert ours == [["X-B", "1"], ["x-a", "2"], ["X-b", "3"], ["X-Num", "4"]]


def test_client_headers_are_replaced_and_taken_away(origin):
    with mimus.Client(headers={"User-Agent": None, "Accept": "a/b", "X": "1"}) as client:
        response = client.get(origin.url("/get"), headers={"x": "2"})
        assert fields(response, "user-agent") == []
        assert fields(response, "accept") == ["a/b"]
        assert fields(response, "x") == ["2"]
        with pytest.raises(TypeError):
            client.get(origin.url("/get"), headers={"x": None})
        with pytest.raises(mimus.RequestError):
            client.get(origin.url("/get"), headers={"x": "line\r\nbreak"})


def test_nothing_is_added_without_default_headers(origin):
    with mimus.Client(default_headers=False) as client:
        names = [name for name, _ in sent(client.post(origin.url("/post"), content=b"x"))["headers"]]
        assert names == ["Host", "Content-Length"]
        # What the server compresses all the same is decoded all the same.
        assert isinstance(client.get(origin.url("/gzip")).json(), dict)


def test_call_cookies_join_the_clients(origin):
    with mimus.Client(cookies={"a": "1"}) as client:
        client.get(origin.url("/cookies/set?kept=2"))
        response = client.get(origin.url("/get"), cookies={"b": "3"})
        assert fields(response, "cookie") == ["a=1; b=3; kept=2"]


@pytest.mark.parametrize(
    "content",
    [
        "h\u00e9llo",
        "h\u00e9llo".encode(),
        bytearray("h\u00e9llo".encode()),
        memoryview("h\u00e9llo".encode()),
        array.array("B", "h\u00e9llo".encode()),
        io.BytesIO("h\u00e9llo".encode()),
    ],
    ids=lambda content: type(content).__name__,
)
def test_bodies_in_memory_have_a_length(client, origin, content):
    response = client.post(origin.url("/post"), content=content)
    assert sent(response)["data"] == "h\u00e9llo"
    assert fields(response, "content-length") == ["6"]


def test_large_buffers_are_lent(client, origin):
    import hashlib

    content = bytearray(bytes(range(256)) * 8192)
    said = client.post(origin.url("/upload"), content=content).json()
    assert said["sha256"] == hashlib.sha256(content).hexdigest()
    # It was given back, so that it can be resized.
    content.append(0)


def test_generators_are_uploaded_as_they_give(client, origin):
    response = client.post(origin.url("/post"), content=(str(n) for n in range(5)))
    assert sent(response)["data"] == "01234"
    assert fields(response, "transfer-encoding") == ["chunked"]
    assert sent(client.post(origin.url("/post"), data=iter([b"a", b"b"])))["data"] == "ab"
    assert sent(client.post(origin.url("/post"), content=[b"a", b"b"]))["data"] == "ab"


def test_a_generator_of_announced_length(client, origin):
    pieces = iter([b"ab", b"c"])
    response = client.post(origin.url("/post"), content=pieces, headers={"Content-Length": "3"})
    assert sent(response)["data"] == "abc"
    assert fields(response, "content-length") == ["3"]
    with pytest.raises(mimus.BodyError):
        client.post(origin.url("/post"), content=iter([b"ab"]), headers={"Content-Length": "3"})


def test_what_a_generator_raises_comes_out_as_itself(client, origin):
    class Mine(Exception):
        pass

    def give():
        yield b"x"
        raise Mine("why")

    with pytest.raises(Mine, match="why"):
        client.post(origin.url("/post"), content=give())
    with pytest.raises(TypeError):
        client.post(origin.url("/post"), content=iter([1]))
    assert client.get(origin.url("/get")).ok


def test_files(client, origin, tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(b"0123456789")
    assert sent(client.post(origin.url("/post"), content=path))["data"] == "0123456789"
    with path.open("rb") as file:
        file.read(4)
        response = client.post(origin.url("/post"), content=file)
        assert sent(response)["data"] == "456789"
        assert fields(response, "content-length") == ["6"]
    with path.open("r") as file:
        assert sent(client.post(origin.url("/post"), content=file))["data"] == "0123456789"
    # It has the descriptor of a file that holds something else.
    packed = tmp_path / "file.gz"
    packed.write_bytes(gzip.compress(b"unpacked"))
    with gzip.open(packed) as file:
        assert sent(client.post(origin.url("/post"), content=file))["data"] == "unpacked"
    with pytest.raises(FileNotFoundError):
        client.post(origin.url("/post"), content=pathlib.Path(tmp_path / "none"))


def test_forms(client, origin):
    response = client.post(origin.url("/post"), data={"a": "b c", "l": [1, 2]})
    assert sent(response)["form"] == {"a": "b c", "l": ["1", "2"]}
    assert fields(response, "content-type") == ["application/x-www-form-urlencoded"]
    assert sent(client.post(origin.url("/post"), data=[("k", "v"), ("k", "w")]))["form"] == {"k": ["v", "w"]}
    assert sent(client.post(origin.url("/post"), data="plain"))["data"] == "plain"


def test_json(client, origin):
    response = client.post(origin.url("/post"), json={"\u00e9": [1, None, True]})
    assert sent(response)["json"] == {"\u00e9": [1, None, True]}
    assert sent(response)["data"] == '{"\u00e9":[1,null,true]}'
    assert fields(response, "content-type") == ["application/json"]
    assert sent(client.post(origin.url("/post"), json=None))["data"] == ""
    own = client.post(origin.url("/post"), json=1, headers={"Content-Type": "application/x+json"})
    assert fields(own, "content-type") == ["application/x+json"]
    with pytest.raises(ValueError):
        client.post(origin.url("/post"), json=float("nan"))
    with pytest.raises(TypeError):
        client.post(origin.url("/post"), json=object())


def test_multipart(client, origin, tmp_path):
    path = tmp_path / "named.txt"
    path.write_bytes(b"from disk")
    with path.open("rb") as file:
        files = [
            ("one", file),
            ("two", ("t.json", b"{}", "application/json", {"X-Part": "1"})),
            ("three", ("t.bin", io.BytesIO(b"bytes"))),
            ("four", "bare"),
        ]
        said = sent(client.post(origin.url("/post"), files=files, data={"field": "value"}))
    parts = {part["name"]: part for part in said["files"]}
    assert parts["one"]["filename"] == "named.txt"
    assert parts["two"]["content_type"] == "application/json"
    assert said["form"]["field"] == "value"
    assert "X-Part: 1" in said["data"] or "x-part: 1" in said["data"]
    assert "from disk" in said["data"]


def test_bodies_exclude_each_other(client, origin):
    with pytest.raises(ValueError):
        client.post(origin.url("/post"), content=b"x", json={})
    with pytest.raises(TypeError):
        client.post(origin.url("/post"), content={"a": "b"})
    with pytest.raises(TypeError):
        client.post(origin.url("/post"), content=3)


def test_unknown_arguments_are_refused(client, origin):
    with pytest.raises(TypeError, match="bogus"):
        client.get(origin.url("/get"), bogus=1)
    with pytest.raises(TypeError, match="bogus"):
        mimus.Client(bogus=1)
    with pytest.raises(ValueError, match="extension"):
        client.get(origin.url("/get"), extensions={"x": 1})
    with pytest.raises(ValueError, match="profile"):
        client.get(origin.url("/get"), profile="chrome")


def test_functions_share_a_client(origin):
    mimus.get(origin.url("/get"))
    assert mimus.post(origin.url("/post"), data={"a": "1"}).reused
    assert sent(mimus.request("DELETE", origin.url("/delete")))["method"] == "DELETE"
    mimus.get(origin.url("/cookies/set?mine=1"))
    assert fields(mimus.get(origin.url("/get")), "cookie") == []
