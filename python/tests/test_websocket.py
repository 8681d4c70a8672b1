"""WebSockets: messages both ways, how they begin and end, and who may use them when. Both clients, unless said."""

import asyncio
import contextlib
import json
import pickle

import pytest

import mimus
from blocking import Blocking

PROTOCOL = [
    "masked-close",
    "ping-fragmented",
    "continuation-alone",
    "text-in-text",
    "length-top-bit",
    "close-one-byte",
]


class BlockingWebSockets(Blocking):
    @contextlib.asynccontextmanager
    async def websocket(self, url, **options):
        with self.client.websocket(url, **options) as socket:
            yield Awaited(socket)


class Awaited:
    def __init__(self, socket):
        self._socket = socket

    def __getattr__(self, name):
        value = getattr(self._socket, name)
        if not callable(value):
            return value

        async def call(*arguments, **options):
            return value(*arguments, **options)

        return call

    async def __aiter__(self):
        for message in self._socket:
            yield message


@pytest.fixture(params=[BlockingWebSockets, mimus.AsyncClient], ids=["sync", "async"])
def make(request, origin):
    """Makes a client of either kind that trusts the origin."""
    return lambda **options: request.param(verify=str(origin.ca), **options)


def run(main):
    return asyncio.run(main())


def ws(origin, path, port="http"):
    url = origin.url(path, port)
    return url.replace("http", "ws", 1)


def test_messages_come_back_as_what_they_were(make, origin):
    async def main():
        async with make() as client, client.websocket(ws(origin, "/ws/echo")) as socket:
            for message in ("chirp", "", "Käuzchen \U0001f989", "\0", b"\0\xff", b"", "x" * 300_000, bytes(300_000)):
                await socket.send(message)
                back = await socket.recv()
                assert (type(back), back) == (type(message), message)
            for message in (bytearray(b"ab"), memoryview(b"xaby")[1:3]):
                await socket.send(message)
                assert await socket.recv() == b"ab"
            assert not socket.closed
            assert (socket.close_code, socket.close_reason) == (None, None)
        assert socket.closed
        assert (socket.close_code, socket.close_reason) == (1000, "")

    run(main)


def test_messages_of_a_kind(make, origin):
    async def main():
        async with make() as client, client.websocket(ws(origin, "/ws/echo")) as socket:
            await socket.send_text("text")
            assert await socket.recv_text() == "text"
            await socket.send_text("täxt")
            assert await socket.recv_bytes() == "täxt".encode()
            await socket.send_bytes(b"\xff")
            assert await socket.recv_bytes() == b"\xff"
            await socket.send_json({"a": [1, None, "ü"]})
            assert await socket.recv_text() == '{"a":[1,null,"ü"]}'
            await socket.send_json([1])
            assert await socket.recv_json() == [1]
            await socket.send_bytes(b"\xff")
            with pytest.raises(TypeError, match="bytes"):
                await socket.recv_text()
            await socket.send("no JSON")
            with pytest.raises(json.JSONDecodeError):
                await socket.recv_json()

    run(main)


@pytest.mark.parametrize("message", [None, 1, {"a": 1}, ["a"], object()])
def test_what_is_no_message_is_refused(make, origin, message):
    async def main():
        async with make() as client, client.websocket(ws(origin, "/ws/echo")) as socket:
            with pytest.raises(TypeError):
                await socket.send(message)
            with pytest.raises(TypeError):
                await socket.send_bytes("text")
            with pytest.raises(TypeError):
                await socket.send_text(b"bytes")
            await socket.send("fine")
            assert await socket.recv() == "fine"

    run(main)


def test_iterates_until_an_orderly_close(make, origin):
    async def main():
        async with make() as client:
            async with client.websocket(ws(origin, "/ws/count?n=2000")) as socket:
                assert [int(message) async for message in socket] == list(range(2000))
                with pytest.raises(mimus.WebSocketClosed) as closed:
                    await socket.recv()
                assert (closed.value.code, closed.value.reason) == (1000, "")
                assert [message async for message in socket] == []
            async with client.websocket(ws(origin, "/ws/fragments?n=7&size=100000&ping=1")) as socket:
                assert [len(message) async for message in socket] == [700_000]

    run(main)


def test_batches_have_what_came_together(make, origin):
    async def main():
        async with make() as client, client.websocket(ws(origin, "/ws/count?n=5000&stay=1")) as socket:
            seen, batches = [], 0
            while len(seen) < 5000:
                batch = await socket.recv_batch(limit=700)
                assert 1 <= len(batch) <= 700
                seen += batch
                batches += 1
            assert [int(message) for message in seen] == list(range(5000))
            assert batches < 2500
            with pytest.raises(mimus.ReadTimeout):
                await socket.recv_batch(timeout=0.01)

    run(main)


@pytest.mark.parametrize(
    ("code", "reason", "normal"),
    [(1000, "", True), (1001, "bye", True), (None, "", True), (1011, "oops", False), (4000, "käputt", False)],
)
def test_close_codes(make, origin, code, reason, normal):
    async def main():
        query = "" if code is None else f"?code={code}&reason={reason}"
        async with make() as client, client.websocket(ws(origin, "/ws/close" + query)) as socket:
            if normal:
                assert [message async for message in socket] == []
            else:
                with pytest.raises(mimus.WebSocketClosed) as closed:
                    [message async for message in socket]
                assert (closed.value.code, closed.value.reason) == (code, reason)
                assert isinstance(closed.value, ConnectionError)
                assert reason in str(closed.value)
            assert (socket.close_code, socket.close_reason) == (code or 1005, reason)
            for late in (socket.send("late"), socket.ping()):
                with pytest.raises(mimus.WebSocketClosed):
                    await late
            await socket.close()

    run(main)


def test_closing_says_why(make, origin):
    async def main():
        async with make() as client, client.websocket(ws(origin, "/ws/echo")) as socket:
            await socket.send("unread")
            await socket.close(4321, "enough")
            assert socket.close_code == 4321
            await socket.close()
            with pytest.raises(mimus.WebSocketClosed):
                await socket.send("late")
            assert [message async for message in socket] == []
            for code, reason in [(1005, ""), (999, ""), (5000, ""), (1000, "x" * 124)]:
                with pytest.raises(ValueError):
                    await socket.close(code, reason)

    run(main)


@pytest.mark.parametrize("reset", [False, True])
def test_a_server_that_vanishes_is_no_orderly_end(make, origin, reset):
    async def main():
        path = "/ws/drop?after=1" + ("&reset=1" if reset else "")
        async with make() as client, client.websocket(ws(origin, path)) as socket:
            await socket.send("one")
            assert await socket.recv() == "one"
            with pytest.raises(mimus.WebSocketClosed) as closed:
                async for _ in socket:
                    pass
            assert (closed.value.code, closed.value.reason) == (1006, "")
            assert (socket.closed, socket.close_code) == (True, 1006)

    run(main)


@pytest.mark.parametrize("name", PROTOCOL)
def test_a_breach_of_the_protocol_is_told(make, origin, name):
    async def main():
        async with make() as client, client.websocket(ws(origin, "/bad-ws/" + name)) as socket:
            with pytest.raises(mimus.WebSocketProtocolError) as broken:
                while True:
                    await socket.recv(timeout=20)
            assert isinstance(broken.value, mimus.WebSocketError)
            assert isinstance(broken.value, ConnectionError)
            assert socket.close_code == 1006

    run(main)


def test_a_message_that_is_too_large_is_refused(make, origin):
    async def main():
        async with make() as client:
            async with client.websocket(ws(origin, "/ws/echo"), max_message_size=1000) as socket:
                await socket.send("x" * 1000)
                assert len(await socket.recv()) == 1000
                await socket.send("x" * 1001)
                with pytest.raises(mimus.WebSocketTooLarge) as large:
                    await socket.recv()
                assert isinstance(large.value, ValueError)
                assert isinstance(large.value, mimus.LimitExceeded)
            async with client.websocket(ws(origin, "/bad-ws/deflate-bomb"), compression=True) as socket:
                with pytest.raises(mimus.WebSocketTooLarge):
                    await socket.recv(timeout=20)

    run(main)


def test_compression_is_agreed_on(make, origin):
    async def main():
        async with make() as client:
            async with client.websocket(ws(origin, "/ws/echo?deflate=yes")) as socket:
                assert socket.compression is None
            url = ws(origin, "/ws/echo?deflate=yes&headers=1")
            async with client.websocket(url, compression=True) as socket:
                assert socket.compression == mimus.Deflate()
                assert "permessage-deflate" in str(await socket.recv_json())
                await socket.send("ab" * 5000)
                assert await socket.recv() == "ab" * 5000
            tuned = mimus.Deflate(level=9, threshold=0, client_no_context_takeover=True)
            async with client.websocket(url, compression=tuned) as socket:
                assert socket.compression.client_no_context_takeover
                await socket.recv()
                await socket.send(b"ab" * 5000)
                assert await socket.recv() == b"ab" * 5000
            async with client.websocket(url, compression=False) as socket:
                assert socket.compression is None

    run(main)


def test_what_compression_may_not_be():
    with mimus.Client() as client, pytest.raises(TypeError):
        client.websocket("ws://127.0.0.1:1/", compression="deflate")
    for wrong in ({"level": 10}, {"server_max_window_bits": 7}, {"client_max_window_bits": 16}):
        with pytest.raises(ValueError):
            mimus.Deflate(**wrong)
    assert hash(mimus.Deflate(level=2)) == hash(mimus.Deflate(level=2)) != hash(mimus.Deflate())


def test_the_handshake_carries_what_was_asked(make, origin):
    async def main():
        async with make(headers={"X-Client": "one"}, params={"from": "client"}) as client:
            url = ws(origin, "/ws/echo?headers=1")
            options = {
                "subprotocols": ["a", "b"],
                "origin": "https://example.com",
                "headers": [("X-Two", "2"), ("X-Two", "3")],
                "cookies": {"c": "d"},
                "params": {"q": "1"},
                "auth": ("user", "word"),
            }
            async with client.websocket(url, **options) as socket:
                asked = await socket.recv_json()
                fields = [(name.lower(), value) for name, value in asked["headers"]]
                assert asked["target"] == "/ws/echo?headers=1&from=client&q=1"
                assert ("sec-websocket-protocol", "a, b") in fields
                assert ("origin", "https://example.com") in fields
                assert [value for name, value in fields if name == "x-two"] == ["2", "3"]
                assert ("x-client", "one") in fields
                assert ("cookie", "c=d") in fields
                assert any(name == "authorization" and value.startswith("Basic ") for name, value in fields)
                assert socket.subprotocol == "b"
                response = socket.response
                assert (response.status, response.http_version) == (101, "HTTP/1.1")
                assert response.headers["Upgrade"].lower() == "websocket"
                assert response.headers["sec-websocket-protocol"] == "b"
                assert response.remote_addr[0] == "127.0.0.1"
                assert response.tls is None

    run(main)


@pytest.mark.parametrize("name", ["content", "data", "files", "json", "stream", "decode", "colour"])
def test_arguments_that_mean_nothing_are_refused(name):
    with mimus.Client() as client, pytest.raises(TypeError, match=name):
        client.websocket("ws://127.0.0.1:1/", **{name: b"x"})

    async def main():
        async with mimus.AsyncClient() as client:
            with pytest.raises(TypeError, match=name):
                client.websocket("ws://127.0.0.1:1/", **{name: b"x"})

    run(main)


@pytest.mark.parametrize("name", ["ping_interval", "ping_timeout", "idle_timeout", "close_timeout"])
def test_times_are_more_than_nothing(name):
    with mimus.Client() as client:
        for wrong in (0, -1):
            with pytest.raises(ValueError):
                client.websocket("ws://127.0.0.1:1/", **{name: wrong})


def test_a_refusal_keeps_the_response(make, origin):
    async def main():
        async with make() as client:
            with pytest.raises(mimus.WebSocketRefused) as refused:
                async with client.websocket(ws(origin, "/ws/refuse?status=429")):
                    pass
            error = refused.value
            assert isinstance(error, (mimus.WebSocketError, ConnectionError))
            assert (error.status, error.response.status) == (429, 429)
            if isinstance(error.response, mimus.AsyncResponse):
                await error.response.aread()
            assert error.response.text == "no socket here\n"
            with pytest.raises(mimus.WebSocketRefused) as refused:
                async with client.websocket(ws(origin, "/bad-ws/accept-wrong")):
                    pass
            assert refused.value.response.status == 101
            with pytest.raises(mimus.ConnectError):
                async with client.websocket(ws(origin, "/", "refused")):
                    pass

    run(main)


def test_redirects_and_credentials(make, origin):
    async def main():
        async with make() as client:
            async with client.websocket(ws(origin, "/ws/redirect")) as socket:
                await socket.send("there")
                assert await socket.recv() == "there"
            with pytest.raises(mimus.WebSocketRefused) as refused:
                async with client.websocket(ws(origin, "/ws/redirect"), follow_redirects=False):
                    pass
            assert refused.value.status == 307
            async with client.websocket(ws(origin, "/ws/basic/me/secret"), auth=("me", "secret")) as socket:
                await socket.send("in")
                assert await socket.recv() == "in"

    run(main)


def test_over_tls(make, origin):
    async def main():
        async with make() as client, client.websocket(ws(origin, "/ws/echo", "https")) as socket:
            await socket.send("secret" * 10_000)
            assert await socket.recv() == "secret" * 10_000
            assert socket.response.tls.version == "TLSv1.3"

    run(main)


@pytest.mark.parametrize("whose", ["client", "call"])
def test_over_http2(make, origin, whose):
    async def main():
        version = {"http_version": "2"}
        async with make(**(version if whose == "client" else {})) as client:
            url = ws(origin, "/ws/echo", "tls-h2")
            options = version if whose == "call" else {}
            async with client.websocket(url, **options) as one, client.websocket(url, **options) as two:
                assert (one.http_version, one.response.status) == ("HTTP/2", 200)
                assert one.response.local_addr == two.response.local_addr
                for socket in (one, two):
                    await socket.send("x" * 200_000)
                for socket in (two, one):
                    assert len(await socket.recv()) == 200_000
            assert (one.close_code, two.close_code) == (1000, 1000)

    run(main)


def test_a_silent_server_times_out(make, origin):
    async def main():
        async with make() as client:
            async with client.websocket(ws(origin, "/ws/echo")) as socket:
                for limit in (0, 0.01):
                    with pytest.raises(mimus.ReadTimeout) as late:
                        await socket.recv(timeout=limit)
                    assert isinstance(late.value, TimeoutError)
                await socket.send("here still")
                assert await socket.recv(timeout=20) == "here still"
                with pytest.raises(ValueError):
                    await socket.recv(timeout=-1)
            url = ws(origin, "/ws/silent")
            for options in ({"ping_interval": 0.02, "ping_timeout": 0.05}, {"idle_timeout": 0.05}):
                async with client.websocket(url, **options) as socket:
                    with pytest.raises(mimus.WebSocketTimeout) as late:
                        await socket.recv()
                    assert isinstance(late.value, (TimeoutError, mimus.WebSocketError))
                    assert socket.closed
            async with client.websocket(url, close_timeout=0.05) as socket:
                await socket.close()
                assert socket.close_code == 1006

    run(main)


def test_pings_are_answered_and_sent(make, origin):
    async def main():
        async with make() as client:
            async with client.websocket(ws(origin, "/ws/ping?n=5")) as socket:
                assert [message async for message in socket] == ["5 pongs"]
            async with client.websocket(ws(origin, "/ws/echo")) as socket:
                await socket.ping()
                await socket.ping(b"x" * 125)
                await socket.pong(b"alive")
                for call in (socket.ping, socket.pong):
                    with pytest.raises(ValueError):
                        await call(b"x" * 126)
                await socket.send("behind")
                assert await socket.recv() == "behind"

    run(main)


def test_an_error_in_the_block_does_not_wait(make, origin):
    async def main():
        async with make() as client:
            with pytest.raises(KeyError):
                # It would take as long to close it in order.
                async with client.websocket(ws(origin, "/ws/silent"), close_timeout=3600) as socket:
                    raise KeyError
            assert (socket.closed, socket.close_code) == (True, 1006)
            with pytest.raises(mimus.WebSocketClosed):
                await socket.recv()

    run(main)


def test_a_profile_speaks_as_its_browser(make, origin):
    async def main():
        async with make(profile="chrome") as client:
            async with client.websocket(ws(origin, "/ws/echo?headers=1&deflate=yes", "https")) as socket:
                fields = dict((await socket.recv_json())["headers"])
                assert "Chrome/" in fields["User-Agent"]
                assert fields["Sec-WebSocket-Extensions"].startswith("permessage-deflate")
                assert socket.compression is not None

    run(main)


def test_sockets_are_not_pickled(client, origin):
    with client.websocket(ws(origin, "/ws/echo")) as socket, pytest.raises(TypeError):
        pickle.dumps(socket)


def test_a_function_of_the_module(origin):
    with mimus.websocket(ws(origin, "/ws/echo")) as socket:
        assert "WebSocket open" in repr(socket)
        socket.send("module")
        assert next(socket) == "module"
    assert "WebSocket closed" in repr(socket)


def test_a_closed_client_opens_none(origin):
    client = mimus.Client()
    client.close()
    with pytest.raises(RuntimeError):
        client.websocket(ws(origin, "/ws/echo"))


def test_hooks_see_the_handshake(origin):
    async def awaited(request):
        request.headers["X-Hook"] = "async"

    def plain(request):
        request.headers["X-Hook"] = "plain"

    with mimus.Client(hooks={"request": plain}) as client:
        with client.websocket(ws(origin, "/ws/echo?headers=1")) as socket:
            assert ["X-Hook", "plain"] in socket.recv_json()["headers"]

    async def main():
        async with mimus.AsyncClient(hooks={"request": awaited}) as client:
            with pytest.raises(TypeError, match="hooks"):
                client.websocket(ws(origin, "/ws/echo"))
            with pytest.raises(TypeError, match="hooks"):
                client.sse(origin.http + "/sse")

    run(main)
