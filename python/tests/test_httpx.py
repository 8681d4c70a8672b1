"""`mimus.httpx` and `mimus.httpx2` under the real clients of both packages."""

import asyncio
import gc
import importlib
import io
import logging
import ssl
import subprocess
import sys

import pytest

import mimus

PACKAGES = ("httpx", "httpx2")


@pytest.fixture(params=PACKAGES)
def package(request):
    return pytest.importorskip(request.param, reason=f"{request.param} is not installed")


def transports(package):
    return importlib.import_module(f"mimus.{package.__name__}")


@pytest.fixture
def client(package, origin):
    with package.Client(transport=transports(package).Transport(verify=origin.ca), trust_env=False) as client:
        yield client


def with_async_client(package, main, **settings):
    async def run():
        transport = transports(package).AsyncTransport(**settings)
        async with package.AsyncClient(transport=transport, trust_env=False) as client:
            return await main(client)

    return asyncio.run(run())


def test_each_module_imports_its_own_package_and_no_other():
    for name, other in (PACKAGES, PACKAGES[::-1]):
        pytest.importorskip(name, reason=f"{name} is not installed")
        program = f"import sys, mimus.{name}; assert '{name}' in sys.modules and '{other}' not in sys.modules"
        subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", PACKAGES)
def test_what_is_missing_is_named(name):
    program = f"""
import sys
sys.modules["httpx"] = sys.modules["httpx2"] = None
try:
    import mimus.{name}
except ImportError as error:
    assert "pip install 'mimus[{name}]'" in str(error), error
else:
    raise AssertionError("it was imported")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_transports_are_what_each_package_wants(package):
    ours = transports(package)
    assert isinstance(ours.Transport(), package.BaseTransport)
    assert isinstance(ours.AsyncTransport(), package.AsyncBaseTransport)


def test_a_transport_serves_both_packages(origin):
    httpx, httpx2 = (pytest.importorskip(name, reason=f"{name} is not installed") for name in PACKAGES)
    for ours in (transports(httpx), transports(httpx2)):
        for package in (httpx, httpx2):
            with package.Client(transport=ours.Transport()) as client:
                assert type(client.get(origin.http + "/get")) is package.Response


def test_a_request_of_neither_package_is_refused(package):
    with pytest.raises(TypeError, match="neither httpx nor httpx2"):
        transports(package).Transport().handle_request(object())


def test_headers_keep_order_case_and_duplicates(client, origin):
    fields = [("X-First", "1"), ("x-Second", "2"), ("X-first", "3"), ("X-Umlaut", "ö".encode())]
    request = client.build_request("GET", origin.http + "/anything")
    request.headers = type(request.headers)([("Host", "somewhere.test"), *fields])
    echoed = client.send(request).json()["headers"]
    said = [[name, value if isinstance(value, str) else value.decode("latin-1")] for name, value in fields]
    assert echoed == [["Host", "somewhere.test"], *said]


def test_the_answers_headers_keep_order_case_and_duplicates(client, origin):
    response = client.get(origin.http + "/response-headers?X-B=1&x-A=2&X-B=3")
    ours = [pair for pair in response.headers.raw if pair[0].lower() in (b"x-a", b"x-b")]
    assert ours == [(b"X-B", b"1"), (b"x-A", b"2"), (b"X-B", b"3")] or ours == [
        (b"X-B", b"1"), (b"X-B", b"3"), (b"x-A", b"2")
    ]
    assert response.headers.get_list("x-b") == ["1", "3"]


def test_nothing_is_added_to_what_httpx_says(client, origin):
    request = client.build_request("POST", origin.http + "/anything", content=b"x")
    echoed = client.send(request).json()["headers"]
    assert echoed == [[name.decode(), value.decode()] for name, value in request.headers.raw]


def test_what_the_response_tells(client, origin):
    response = client.get(origin.https + "/get")
    assert (response.status_code, response.reason_phrase, response.http_version) == (200, "OK", "HTTP/1.1")
    stream = response.extensions["network_stream"]
    host, port = stream.get_extra_info("server_addr")
    assert f":{port}" in origin.https and host in ("127.0.0.1", "::1")
    assert stream.get_extra_info("client_addr")[1] > 0
    assert stream.get_extra_info("weather") is None
    tls = stream.get_extra_info("ssl_object")
    assert tls.version() == "TLSv1.3" and tls.cipher()[0].startswith("TLS_")
    assert ssl.DER_cert_to_PEM_cert(tls.getpeercert(binary_form=True)).startswith("-----BEGIN")
    assert response.extensions["mimus"].timings.first_byte > 0
    assert client.get(origin.http + "/get").extensions["network_stream"].get_extra_info("ssl_object") is None


def bodies():
    yield "bytes", {"content": b"0123456789"}, None
    yield "empty", {"content": b""}, None
    yield "form", {"data": {"a": "1", "b": "ö"}}, None
    yield "json", {"json": {"a": [1, 2]}}, None
    yield "pieces", {"content": lambda: iter([b"01", b"", b"23"])}, "chunked"
    yield "file", {"content": lambda: io.BytesIO(b"0123456789")}, None
    yield "multipart", {"files": {"f": ("name.txt", b"0123456789", "text/plain")}, "data": {"a": "1"}}, None
    yield "large", {"content": lambda: iter([b"x" * 65536] * 40)}, "chunked"


@pytest.mark.parametrize(("body", "coding"), [pytest.param(b, c, id=name) for name, b, c in bodies()])
def test_bodies_arrive_as_they_were_announced(client, origin, body, coding):
    body = {name: value() if callable(value) else value for name, value in body.items()}
    echoed = client.post(origin.http + "/anything", **body).json()
    fields = {name.lower(): value for name, value in echoed["headers"]}
    assert fields.get("transfer-encoding") == coding
    if coding is None:
        assert int(fields["content-length"]) == echoed["body_length"]
    assert ("content-length" in fields) == (coding is None)


def test_a_length_that_is_not_held_is_the_callers_fault(client, package, origin):
    for pieces in ([b"12"], [b"12", b"34"]):
        with pytest.raises(package.LocalProtocolError):
            client.post(origin.http + "/anything", content=iter(pieces), headers={"Content-Length": "3"})


def test_an_iterators_own_exception_comes_out(client, origin):
    class Own(Exception):
        pass

    def pieces():
        yield b"x"
        raise Own

    with pytest.raises(Own):
        client.post(origin.http + "/anything", content=pieces())


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_decoding_is_left_to_httpx(client, origin, coding):
    with client.stream("GET", f"{origin.http}/{coding}") as response:
        raw = b"".join(response.iter_raw())
    assert client.get(f"{origin.http}/{coding}").content != raw
    assert client.get(f"{origin.http}/{coding}").headers["content-encoding"] == coding


def test_redirects_cookies_and_credentials_are_left_to_httpx(client, origin):
    assert client.get(origin.http + "/redirect/1").status_code == 302
    response = client.get(origin.http + "/cookies/set?a=1", follow_redirects=True)
    assert len(response.history) == 1 and client.cookies["a"] == "1"
    assert client.get(origin.http.replace("://", "://user:pw@") + "/basic-auth/user/pw").status_code == 200
    assert client.get(origin.http + "/digest-auth/auth/u/p", auth=("u", "p")).status_code == 401


def test_connections_are_used_again(client, origin):
    echoes = [client.get(origin.http + "/anything").json() for _ in range(10)]
    assert len({echo["connection"] for echo in echoes}) == 1


def test_a_stream_is_read_as_it_comes_and_may_be_left(client, origin):
    with client.stream("GET", origin.http + "/sse/every/5") as response:
        lines = response.iter_lines()
        assert [next(lines) for _ in range(4)]
        assert not response.is_closed
    assert response.is_closed
    assert client.get(origin.http + "/get").status_code == 200


def test_streams_left_over_http2_leave_the_connection(package, origin):
    transport = transports(package).Transport(http1=False, http2=True)
    with package.Client(transport=transport, trust_env=False) as client:
        url = f"http://{origin.ports['h2c']}"
        first = client.get(url + "/anything")
        for _ in range(20):
            with client.stream("GET", url + "/sse/every/5") as response:
                next(response.iter_bytes())
        assert first.http_version == "HTTP/2"
        assert client.get(url + "/anything").json()["connection"] == first.json()["connection"]


def test_versions_are_as_allowed(package, origin):
    url = f"https://localhost:{origin.ports['tls-h2-http1'].rpartition(':')[2]}/get"
    for settings, version in (({}, "HTTP/2"), ({"http2": False}, "HTTP/1.1"), ({"http1": False}, "HTTP/2")):
        transport = transports(package).Transport(verify=origin.ca, **settings)
        with package.Client(transport=transport, trust_env=False) as client:
            assert client.get(url).http_version == version
    with pytest.raises(ValueError, match="neither"):
        transports(package).Transport(http1=False, http2=False)


TIMEOUTS = (
    ("no-accept", "/", {"connect": 0.2}, "ConnectTimeout"),
    ("http", "/delay/30", {"read": 0.2}, "ReadTimeout"),
    ("never-read", "/", {"write": 0.2}, "WriteTimeout"),
)


@pytest.mark.parametrize(("port", "path", "limits", "name"), TIMEOUTS)
def test_timeouts(client, package, origin, port, path, limits, name):
    body = {"content": b"x" * (64 << 20)} if name == "WriteTimeout" else {}
    with pytest.raises(getattr(package, name)) as caught:
        client.post(f"http://{origin.ports[port]}{path}", timeout=package.Timeout(None, **limits), **body)
    assert caught.value.request.url.path == path


def test_a_body_that_stops_times_out(client, package, origin):
    limits = package.Timeout(None, read=3)
    with client.stream("GET", origin.http + "/sse/every/60000", timeout=limits) as response:
        with pytest.raises(package.ReadTimeout):
            list(response.iter_bytes())


def test_a_full_pool_times_out(package, origin):
    transport = transports(package).Transport(limits=package.Limits(max_connections=1))
    with package.Client(transport=transport, trust_env=False) as client:
        with client.stream("GET", origin.http + "/sse/every/50"), pytest.raises(package.PoolTimeout):
            client.get(origin.http + "/get", timeout=package.Timeout(None, pool=0.1))
        assert client.get(origin.http + "/get").status_code == 200


FAILURES = (
    ("refused", "ConnectError"),
    ("tls-garbage", "ConnectError"),
    ("tls-self-signed", "ConnectError"),
    ("close-on-accept", "RemoteProtocolError"),
    # While connecting, or just after.
    ("reset-on-accept", "TransportError"),
)


@pytest.mark.parametrize(("port", "name"), FAILURES)
def test_failures(client, package, origin, port, name):
    scheme = "https" if port.startswith("tls") else "http"
    port = origin.ports[port].rpartition(":")[2]
    with pytest.raises(getattr(package, name)) as caught:
        client.get(f"{scheme}://localhost:{port}/")
    assert isinstance(caught.value.__cause__, mimus.Error)


def test_names_without_addresses_and_urls_that_cannot_be_asked(client, package):
    for url, name in (
        ("http://nowhere.invalid/", "ConnectError"),
        ("ftp://localhost/", "UnsupportedProtocol"),
        ("http://localhost:99999/", "ConnectError"),
    ):
        with pytest.raises(getattr(package, name)):
            client.get(url)


ENDINGS = (
    ("close-before-head", "RemoteProtocolError"),
    ("garbage-head", "RemoteProtocolError"),
    ("huge-header", "RemoteProtocolError"),
    ("reset-before-head", "RemoteProtocolError"),
    ("reset-mid-body", "RemoteProtocolError"),
    ("truncate", "RemoteProtocolError"),
    ("truncate-in-chunk", "RemoteProtocolError"),
)


@pytest.mark.parametrize(("ending", "name"), ENDINGS)
def test_answers_that_end_badly(client, package, origin, ending, name):
    with pytest.raises(getattr(package, name)):
        client.get(f"{origin.http}/bad/{ending}")


def test_proxies(package, origin):
    secret = f"http://user:secret@{origin.ports['proxy-auth']}"
    url = package.URL(f"http://{origin.ports['proxy-auth']}")
    ways = (
        ("http://" + origin.ports["proxy"], True),
        (secret, True),
        (package.Proxy(url, auth=("user", "secret")), True),
        (package.Proxy(secret), True),
        ("socks5://" + origin.ports["socks"], True),
        ("http://" + origin.ports["proxy-auth"], False),
    )
    for proxy, passes in ways:
        transport = transports(package).Transport(proxy=proxy, verify=origin.ca)
        with package.Client(transport=transport, trust_env=False) as client:
            assert (client.get(origin.http + "/get").status_code == 200) == passes
            if passes:
                assert client.get(origin.https + "/get").status_code == 200
            else:
                with pytest.raises(package.ProxyError):
                    client.get(origin.https + "/get")


def test_the_environments_proxies_count_where_they_may(package, origin, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", f"http://{origin.ports['proxy-broken']}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    for trusted, status in ((True, 502), (False, 200)):
        with package.Client(transport=transports(package).Transport(trust_env=trusted)) as client:
            assert client.get(origin.http + "/get").status_code == status


def test_verification(package, origin):
    for verify, url in ((origin.ca, origin.https), (open(origin.ca, "rb").read(), origin.https), (False, origin.https)):
        with package.Client(transport=transports(package).Transport(verify=verify)) as client:
            assert client.get(url + "/get").status_code == 200
    with package.Client(transport=transports(package).Transport()) as client, pytest.raises(package.ConnectError):
        client.get(origin.https + "/get")
    with pytest.raises(TypeError, match="SSLContext"):
        transports(package).Transport(verify=ssl.create_default_context())


def test_a_name_for_an_address(client, package, origin):
    port = origin.https.rpartition(":")[2]
    named = {"sni_hostname": "origin.test"}
    echo = client.get(f"https://127.0.0.1:{port}/anything", extensions=named).json()
    assert echo["sni"] == "origin.test"
    assert ["Host", f"127.0.0.1:{port}"] in echo["headers"]
    with pytest.raises(package.LocalProtocolError, match="sni_hostname"):
        client.get(origin.https + "/anything", extensions=named)


def test_a_target_of_ones_own(client, package, origin):
    echo = client.get(origin.http + "/get", extensions={"target": b"/anything/there?x=%zz"}).json()
    assert echo["target"] == "/anything/there?x=%zz"
    with pytest.raises(package.LocalProtocolError, match="target"):
        client.get(origin.http, extensions={"target": b"*"})


def test_a_trace_tells_what_happened(client, origin):
    told = []
    extensions = {"trace": lambda name, info: told.append((name, info))}
    client.get(origin.http + "/get", extensions=extensions)
    client.get(origin.http + "/get", extensions=extensions)
    names = [name for name, _ in told]
    assert names.count("connection.connect_tcp.complete") == 1
    assert names.count("http11.receive_response_headers.complete") == 2
    assert names[-1] == "http11.response_closed.complete"
    version, status, reason, fields = dict(told)["http11.receive_response_headers.complete"]["return_value"]
    assert (version, status, reason) == (b"HTTP/1.1", 200, b"OK") and fields


def test_arguments_of_mimus_for_one_request(client, origin):
    resolve = {"resolve": {"elsewhere.test": "127.0.0.1"}}
    url = f"http://elsewhere.test:{origin.ports['http'].rpartition(':')[2]}/get"
    assert client.get(url, extensions={"mimus": resolve}).status_code == 200


def test_a_profile(package, origin):
    transport = transports(package).Transport(verify=origin.ca, profile="chrome")
    url = f"https://localhost:{origin.ports['tls-h2-http1'].rpartition(':')[2]}/anything"
    with package.Client(transport=transport, trust_env=False) as client:
        response = client.get(url)
        assert (response.status_code, response.http_version) == (200, "HTTP/2")


def test_async_answers_bodies_and_reuse(package, origin):
    async def main(client):
        async def pieces():
            for piece in (b"01", b"23"):
                yield piece
                await asyncio.sleep(0)

        sent = await client.post(origin.http + "/anything", content=pieces())
        assert sent.json()["data"] == "0123"
        form = await client.post(origin.http + "/anything", files={"f": b"0123456789"})
        assert form.json()["body_length"] > 10
        echoes = [(await client.get(origin.http + "/anything")).json() for _ in range(5)]
        assert len({echo["connection"] for echo in echoes}) == 1
        told = []

        async def trace(name, info):
            told.append(name)

        await client.get(origin.http + "/get", extensions={"trace": trace})
        assert "http11.receive_response_headers.complete" in told

    with_async_client(package, main)


@pytest.mark.parametrize(("port", "path", "limits", "name"), TIMEOUTS)
def test_async_timeouts(package, origin, port, path, limits, name):
    body = {"content": b"x" * (64 << 20)} if name == "WriteTimeout" else {}

    async def main(client):
        with pytest.raises(getattr(package, name)):
            await client.post(f"http://{origin.ports[port]}{path}", timeout=package.Timeout(None, **limits), **body)

    with_async_client(package, main)


def test_async_streams_are_left_and_cancelled(package, origin):
    url = f"http://{origin.ports['h2c']}"

    async def main(client):
        first = (await client.get(url + "/anything")).json()
        for _ in range(20):
            begun = asyncio.Event()

            async def listen(begun):
                async with client.stream("GET", url + "/sse/every/5") as response:
                    async for _ in response.aiter_lines():
                        begun.set()

            task = asyncio.create_task(listen(begun))
            await asyncio.wait_for(begun.wait(), 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert (await client.get(url + "/anything")).json()["connection"] == first["connection"]

    with_async_client(package, main, http1=False)


def test_bodies_of_the_other_kind_are_refused(package, origin):
    async def pieces():
        yield b"x"

    request = package.Request("POST", origin.http, content=pieces())
    with pytest.raises(RuntimeError, match="a sync stream"):
        transports(package).Transport().handle_request(request)

    async def main():
        request = package.Request("POST", origin.http, content=iter([b"x"]))
        with pytest.raises(RuntimeError, match="an async stream"):
            await transports(package).AsyncTransport().handle_async_request(request)

    asyncio.run(main())


def test_without_asyncio_it_is_said(package, origin):
    transport = transports(package).AsyncTransport()
    coroutine = transport.handle_async_request(package.Request("GET", origin.http))
    with pytest.raises(RuntimeError, match="asyncio"):
        coroutine.send(None)


def test_nothing_is_left_of_responses(package, client, origin, monkeypatch):
    # pytest keeps what is logged.
    monkeypatch.setattr(logging.getLogger(package.__name__), "disabled", True)
    for _ in range(3):
        client.get(origin.http + "/bytes/100000")
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(200):
        client.get(origin.http + "/bytes/1000")
    gc.collect()
    assert len(gc.get_objects()) - before < 200
