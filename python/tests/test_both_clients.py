"""What broke in a client of others', held against both of ours.

(Cancel storms are in `test_async_loops.py`, memory in `test_package.py` and there.)
"""

import asyncio
import concurrent.futures
import gzip
import json
import socket
import threading
import time

import pytest

import mimus


class Sync:
    """Calls that block."""

    name = "Client"

    def __init__(self, **options):
        self.client = mimus.Client(**options)

    def __call__(self, method, url, **options):
        return self.client.request(method, url, **options)

    def many(self, url, calls, threads):
        """The answers to `calls` calls from as many threads at a time."""
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda n: self.client.get(url, params={"n": n}), range(calls)))

    def leave(self, url):
        """Reads a piece of a stream, and leaves it: what came, and the head's status."""
        with self.client.stream("GET", url) as response:
            return next(iter(response)), response.status

    def close(self):
        self.client.close()


class Async:
    """The same, awaited on a loop of its own."""

    name = "AsyncClient"

    def __init__(self, **options):
        self.runner = asyncio.Runner()
        self.client = mimus.AsyncClient(**options)

    def __call__(self, method, url, **options):
        async def call():
            return await self.client.request(method, url, **options)

        return self.runner.run(call())

    def many(self, url, calls, at_once):
        async def call():
            gate = asyncio.Semaphore(at_once)

            async def one(n):
                async with gate:
                    return await self.client.get(url, params={"n": n})

            return await asyncio.gather(*map(one, range(calls)))

        return self.runner.run(call())

    def leave(self, url):
        async def call():
            async with self.client.stream("GET", url) as response:
                return await anext(response.aiter_bytes()), response.status

        return self.runner.run(call())

    def close(self):
        async def end():
            await self.client.aclose()

        self.runner.run(end())
        self.runner.close()


@pytest.fixture(params=[Sync, Async], ids=lambda kind: kind.name)
def make(request, origin):
    """Makes clients of one kind, which trust the origin."""
    made = []

    def client(**options):
        made.append(request.param(**{"verify": str(origin.ca)} | options))
        return made[-1]

    yield client
    for one in made:
        one.close()


@pytest.fixture
def call(make):
    return make()


def test_userinfo_in_urls(call, origin):
    plain = origin.url("/basic-auth/us%40er/p%3Ass")
    assert call("GET", plain).status == 401
    response = call("GET", plain.replace("://", "://us%40er:p%3Ass@"))
    assert response.status == 200
    assert "@" not in response.url


def test_ipv6_urls(call, origin6):
    response = call("GET", origin6.url("/get"))
    assert response.remote_addr[0] == "::1"
    assert dict(response.json()["headers"])["Host"] == origin6.http.removeprefix("http://")
    assert call("GET", origin6.url("/basic-auth/u/p").replace("://", "://u:p@")).status == 200


def test_status_and_headers(call, origin):
    for status in (200, 204, 404, 503):
        assert call("GET", origin.url(f"/status/{status}")).status == status
    response = call("GET", origin.url("/response-headers?X-A=1&X-A=2&x-b=3"))
    assert response.headers.get_list("x-a") == ["1", "2"]
    assert response.headers["X-B"] == "3"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "brotli", "zstd"])
def test_codings(call, origin, coding):
    assert call("GET", origin.url(f"/{coding}")).json()["coded"]
    raw = call("GET", origin.url("/gzip"), decode=False)
    assert json.loads(gzip.decompress(raw.content))["coded"] == "gzip"


@pytest.mark.parametrize(("port", "options"), [("http", {}), ("https", {}), ("tls-h2", {}), ("h2c", {"http_version": "h2c"})])
def test_calls_in_a_row_share_a_connection(make, origin, port, options):
    call = make(**options)
    answers = [call("POST", origin.url("/post", port), content=f"{n}") for n in range(10)]
    assert [answer.json()["data"] for answer in answers] == [str(n) for n in range(10)]
    assert len({answer.json()["connection"] for answer in answers}) == 1
    assert [answer.reused for answer in answers] == [False] + [True] * 9


def test_calls_at_a_time_make_no_more_connections_than_allowed(make, origin):
    call = make(limits=mimus.Limits(max_connections_per_host=4))
    answers = call.many(origin.url("/get"), 64, 16)
    assert [answer.json()["args"]["n"] for answer in answers] == [str(n) for n in range(64)]
    assert len({answer.json()["connection"] for answer in answers}) <= 4


def test_calls_at_a_time_share_a_connection_of_http2(call, origin):
    answers = call.many(origin.url("/get", "tls-h2"), 64, 16)
    assert {answer.http_version for answer in answers} == {"HTTP/2"}
    assert [answer.json()["args"]["n"] for answer in answers] == [str(n) for n in range(64)]
    assert len({answer.json()["connection"] for answer in answers}) == 1


def test_set_cookie_is_never_joined(call, origin):
    response = call("GET", origin.url("/response-headers?Set-Cookie=a%3D1&Set-Cookie=b%3D2%3B%20Path%3D/"))
    assert response.headers.get_list("set-cookie") == ["a=1", "b=2; Path=/"]
    assert response.cookies == {"a": "1", "b": "2"}
    assert call.client.cookies.header(origin.http + "/") == "a=1; b=2"


@pytest.mark.parametrize(("charset", "said"), [("utf8", "utf-8"), ("utf16", None), ("latin1", None), ("shift_jis", None)])
def test_charsets(call, origin, charset, said):
    response = call("GET", origin.url(f"/encoding/{charset}"))
    assert "\ufffd" not in response.text and any(ord(letter) > 127 for letter in response.text)
    if said:
        assert response.encoding == said


@pytest.mark.parametrize("method", ["PROPFIND", "Brew", "QUERY", "M-SEARCH"])
def test_methods_that_nobody_knows(call, origin, method):
    assert call(method, origin.url("/anything"), content=b"x").json()["method"] == method


def test_generators_are_uploaded(call, origin):
    response = call("POST", origin.url("/post"), content=(piece for piece in [b"one ", b"two ", b"", "three"]))
    assert response.json()["data"] == "one two three"
    sent = dict(response.json()["headers"])
    assert sent["Transfer-Encoding"] == "chunked" and "Content-Length" not in sent


def test_a_dripping_body_times_out(call, origin):
    started = time.monotonic()
    with pytest.raises(mimus.ReadTimeout) as caught:
        call("GET", origin.url("/drip?numbytes=6000&duration=60"), timeout=1)
    # Each of its bytes is in time; all of them would take a minute.
    assert time.monotonic() - started < 30
    assert caught.value.phase == "body"
    assert call("GET", origin.url("/get")).ok


def test_a_proxy_is_really_used(make, origin):
    proxy = origin.url("", "proxy")
    port = int(proxy.rpartition(":")[2])
    call = make(proxy=proxy)
    for url in (origin.url("/get"), origin.url("/get", "https")):
        assert call("GET", url).remote_addr[1] == port
        assert call("GET", url, proxy=False).remote_addr[1] != port
    # Where there is none to be had, nothing goes past it.
    with pytest.raises(mimus.Error):
        make(proxy=origin.url("", "refused"))("GET", origin.url("/get"))


def test_a_stream_returns_at_the_head():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        head_is_seen = threading.Event()

        def serve():
            for _ in range(2):
                peer, _ = listener.accept()
                with peer:
                    peer.recv(65536)
                    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
                    # Were the body awaited, this would be too.
                    head_is_seen.wait()
                    peer.sendall(b"body")

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        with mimus.Client() as client, client.stream("GET", url) as response:
            assert response.status == 200
            head_is_seen.set()
            assert response.read() == b"body"
        head_is_seen.clear()

        async def main():
            async with mimus.AsyncClient() as client, client.stream("GET", url) as response:
                assert response.status == 200
                head_is_seen.set()
                assert await response.aread() == b"body"

        asyncio.run(main())
        server.join()


def test_streams_that_are_left(call, origin):
    for port in ("http", "tls-h2"):
        for _ in range(5):
            piece, status = call.leave(origin.url("/bytes/10000000", port))
            assert piece and status == 200
        assert call("GET", origin.url("/get", port)).ok


def test_threads_share_a_client(make, origin):
    """Each with a loop of its own, where there are loops."""
    client = make().client
    url = origin.url("/post")

    def blocking(n):
        return [client.post(url, content=f"{n}-{turn}").json()["data"] for turn in range(20)]

    def awaiting(n):
        async def calls():
            return [(await client.post(url, content=f"{n}-{turn}")).json()["data"] for turn in range(20)]

        return asyncio.run(calls())

    work = awaiting if isinstance(client, mimus.AsyncClient) else blocking
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        for n, said in enumerate(threads.map(work, range(8))):
            assert said == [f"{n}-{turn}" for turn in range(20)]
