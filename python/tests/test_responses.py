"""What an answer tells, and how its body is read."""

import copy
import datetime
import pickle

import pytest

import mimus


def test_the_head(client, origin):
    response = client.get(origin.url("/status/404"))
    assert (response.status, response.status_code, response.reason) == (404, 404, "Not Found")
    assert not response.ok and not response
    assert response.http_version == "HTTP/1.1"
    assert response.url == origin.url("/status/404")
    assert response.remote_addr == ("127.0.0.1", int(origin.http.rpartition(":")[2]))
    assert response.local_addr[0] == "127.0.0.1"
    assert repr(response) == "<Response [404 Not Found]>"


def test_headers(client, origin):
    response = client.get(origin.url("/response-headers?X-One=1&x-one=2&Content-Language=de"))
    headers = response.headers
    assert headers["X-ONE"] == "1, 2"
    assert headers.get_list("x-One") == ["1", "2"]
    assert ("x-one", "2") in [(name.lower(), value) for name, value in headers.pairs()]
    assert "content-language" in headers and "nope" not in headers and 3 not in headers
    assert headers.get("nope") is None and headers.get("nope", "x") == "x"
    assert len(dict(headers)) == len(headers) == len(headers.keys())
    assert headers == headers.pairs() and headers != {"x": "y"}
    with pytest.raises(KeyError):
        headers["nope"]


def test_headers_of_ones_own():
    headers = mimus.Headers({"A": "1"})
    headers["B"] = "2"
    headers.add("a", b"3")
    assert headers.pairs() == [("A", "1"), ("B", "2"), ("a", "3")]
    del headers["A"]
    assert list(headers) == ["B"]
    assert pickle.loads(pickle.dumps(headers)) == headers
    for bad in ("line\nbreak", "\0"):
        with pytest.raises(ValueError):
            headers["C"] = bad
    with pytest.raises(ValueError):
        headers["not a name"] = "x"


def test_duplicate_set_cookie_is_not_joined(client, origin):
    response = client.get(origin.url("/response-headers?Set-Cookie=a%3D1&Set-Cookie=b%3D2%3B%20Path%3D/"))
    assert response.headers.get_list("set-cookie") == ["a=1", "b=2; Path=/"]
    assert response.headers["set-cookie"] == "a=1"
    assert response.cookies == {"a": "1", "b": "2"}


@pytest.mark.parametrize("charset", ["utf8", "utf16", "latin1", "shift_jis"])
def test_charsets(client, origin, charset):
    response = client.get(origin.url(f"/encoding/{charset}"))
    text = response.text
    assert "\ufffd" not in text
    assert any(ord(letter) > 127 for letter in text)
    with client.get(origin.url(f"/encoding/{charset}"), stream=True) as streamed:
        assert "".join(streamed.iter_text()) == text


def test_an_encoding_of_ones_own(client, origin):
    response = client.get(origin.url("/encoding/utf8"))
    assert response.encoding == "utf-8"
    response.encoding = "cp437"
    assert response.text == response.content.decode("cp437")
    with client.get(origin.url("/encoding/utf8"), stream=True) as streamed:
        streamed.encoding = "utf-16-le"
        assert "".join(streamed.iter_text()) == response.content.decode("utf-16-le", "replace")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "brotli", "zstd", "stacked"])
def test_codings(client, origin, coding):
    assert isinstance(client.get(origin.url(f"/{coding}")).json(), dict)


def test_a_body_left_as_it_was_coded(client, origin):
    import gzip

    response = client.get(origin.url("/gzip"), headers={"Accept-Encoding": "gzip"}, decode=False)
    assert gzip.decompress(response.content).startswith(b"{")
    with client.get(origin.url("/gzip"), stream=True) as streamed:
        pieces = [bytes(piece) for piece in streamed.iter_raw()]
        assert gzip.decompress(b"".join(pieces)).startswith(b"{")
    with client.get(origin.url("/bytes/300000"), stream=True) as streamed:
        views = list(streamed.iter_raw())
        assert all(isinstance(view, memoryview) and view.readonly for view in views)
        assert sum(map(len, views)) == 300000


@pytest.mark.parametrize("size", [0, 1, 1000, 65535, 65536, 65537, 3_000_000])
def test_bodies_of_every_size(client, origin, size):
    whole = client.get(origin.url(f"/bytes/{size}?seed=7"))
    assert len(whole.content) == size
    assert whole.content is whole.content
    chunked = client.get(origin.url(f"/stream-bytes/{size}?seed=7"))
    assert chunked.content == whole.content
    with client.get(origin.url(f"/bytes/{size}?seed=7"), stream=True) as streamed:
        assert streamed.content == whole.content
    with client.get(origin.url(f"/bytes/{size}?seed=7"), stream=True) as streamed:
        pieces = list(streamed.iter_bytes(4096))
        assert b"".join(pieces) == whole.content
        assert all(len(piece) == 4096 for piece in pieces[:-1])
    assert b"".join(whole.iter_bytes(777)) == whole.content


def test_a_stream_is_handed_out_at_its_head(client, origin):
    with client.get(origin.url("/drip?numbytes=2&duration=60"), stream=True) as response:
        assert response.status == 200
        assert not response.is_closed
        assert response.timings.total is None
    assert response.is_closed


def test_reading_like_a_file(client, origin):
    whole = client.get(origin.url("/bytes/200000?seed=3"))
    assert whole.read(10) == whole.content[:10]
    assert whole.read() == whole.content[10:]
    assert whole.read() == whole.read(5) == b""
    with client.get(origin.url("/bytes/200000?seed=3"), stream=True) as streamed:
        assert streamed.read(10) == whole.content[:10]
        assert streamed.read(0) == b""
        assert streamed.read(150000) == whole.content[10:150010]
        assert streamed.read() == whole.content[150010:]
        assert streamed.read(1) == b""


def test_lines(client, origin):
    with client.get(origin.url("/stream/5"), stream=True) as response:
        lines = list(response.iter_lines())
    assert len(lines) == 5
    assert all(line.startswith("{") and line.endswith("}") for line in lines)


def test_a_body_is_streamed_once(client, origin):
    with client.get(origin.url("/bytes/100000"), stream=True) as response:
        list(response)
        with pytest.raises(mimus.StreamConsumed):
            response.content
        with pytest.raises(RuntimeError):
            list(response.iter_bytes())
    with client.get(origin.url("/bytes/100000"), stream=True) as response:
        pass
    with pytest.raises(mimus.StreamConsumed):
        response.read()


def test_saving(client, origin, tmp_path):
    seen = []
    path = tmp_path / "saved"
    with client.get(origin.url("/bytes/300000"), stream=True) as response:
        assert response.save(path, progress=lambda done, total: seen.append((done, total))) == 300000
    assert seen[-1] == (300000, 300000) and len(seen) > 1
    assert path.read_bytes() == client.get(origin.url("/bytes/300000")).content
    assert client.get(origin.url("/bytes/10")).save(str(path)) == 10

    def stop(done, total):
        raise KeyError("enough")

    with client.get(origin.url("/bytes/300000"), stream=True) as response:
        with pytest.raises(KeyError):
            response.save(path, progress=stop)
        assert response.is_closed
    with pytest.raises(OSError):
        client.get(origin.url("/bytes/10")).save(tmp_path / "no" / "such")


def test_json_options(client, origin):
    import decimal

    number = client.get(origin.url("/get")).json(parse_int=decimal.Decimal)["body_length"]
    assert isinstance(number, decimal.Decimal)
    with pytest.raises(ValueError):
        client.get(origin.url("/html")).json()


def test_timings(client, origin):
    first = client.get(origin.url("/get", "https"))
    assert first.timings.connect > 0 and first.timings.tls > 0
    assert first.timings.total >= first.timings.first_byte > 0
    second = client.get(origin.url("/get", "https"))
    assert second.reused and second.timings.connect is None and second.timings.tls is None
    assert isinstance(first.elapsed, datetime.timedelta) and first.elapsed.total_seconds() > 0


def test_tls(client, origin):
    tls = client.get(origin.url("/get", "tls13")).tls
    assert tls.version == "TLSv1.3" and tls.cipher.startswith("TLS_")
    assert tls.certificate == tls.certificates[0] and tls.certificate[:1] == b"\x30"
    assert client.get(origin.url("/get", "tls-h2")).tls.alpn == "h2"
    assert client.get(origin.url("/get")).tls is None


def test_trailers(client, origin):
    response = client.get(origin.url("/trailers"))
    assert len(response.trailers) == 2
    assert client.get(origin.url("/get")).trailers is None
    with client.get(origin.url("/trailers"), stream=True) as streamed:
        list(streamed)
        assert streamed.trailers == response.trailers


def test_raise_for_status(client, origin):
    fine = client.get(origin.url("/get"))
    assert fine.raise_for_status() is fine
    for status in (400, 404, 503):
        response = client.get(origin.url(f"/status/{status}"))
        with pytest.raises(mimus.StatusError, match=str(status)) as caught:
            response.raise_for_status()
        assert caught.value.response is response
        assert (caught.value.status, caught.value.url) == (status, response.url)


def test_neither_responses_nor_clients_are_pickled(client, origin):
    with pytest.raises(TypeError, match="content"):
        pickle.dumps(client.get(origin.url("/get")))
    with pytest.raises(TypeError, match="Make one in each"):
        pickle.dumps(client)
    with pytest.raises(TypeError):
        copy.copy(client)


def test_a_closed_client(origin):
    with mimus.Client() as client:
        assert client.get(origin.url("/get")).ok
    assert client.is_closed
    with pytest.raises(RuntimeError):
        client.get(origin.url("/get"))
