"""WebSockets against the servers of other packages, where those are installed."""

import asyncio

import pytest

import mimus

TEXTS = ["chirp", "", "Käuzchen \U0001f989", "x" * 200_000]


async def talk(url):
    async with mimus.AsyncClient() as client:
        async with client.websocket(url, subprotocols=["b"], compression=True) as socket:
            assert socket.subprotocol == "b"
            assert socket.compression is not None
            for message in [*TEXTS, b"\0\xff", bytes(200_000)]:
                await socket.send(message)
                assert await socket.recv() == message
            await socket.ping(b"there?")
            await asyncio.gather(*(socket.send(str(n)) for n in range(500)))
            assert [int(await socket.recv()) for _ in range(500)] == list(range(500))
        assert (socket.close_code, socket.close_reason) == (1000, "")


def talk_blocking(url):
    with mimus.websocket(url, subprotocols=["b"], compression=True) as socket:
        for message in [*TEXTS, b"\0\xff"]:
            socket.send(message)
            assert socket.recv() == message
    assert socket.close_code == 1000


def test_websockets():
    server = pytest.importorskip("websockets.asyncio.server")
    closed = pytest.importorskip("websockets.exceptions").ConnectionClosed

    async def echo(connection):
        async for message in connection:
            await connection.send(message)
        with pytest.raises(closed):
            await connection.recv()

    async def main():
        async with server.serve(echo, "127.0.0.1", 0, subprotocols=["a", "b"], max_size=None) as serving:
            url = f"ws://127.0.0.1:{serving.sockets[0].getsockname()[1]}/"
            await talk(url)
            await asyncio.to_thread(talk_blocking, url)

    asyncio.run(main())


def test_aiohttp():
    web = pytest.importorskip("aiohttp.web")

    async def echo(request):
        socket = web.WebSocketResponse(protocols=["b"], max_msg_size=0)
        await socket.prepare(request)
        async for message in socket:
            if isinstance(message.data, str):
                await socket.send_str(message.data)
            else:
                await socket.send_bytes(message.data)
        assert socket.close_code == 1000
        return socket

    async def main():
        app = web.Application()
        app.router.add_get("/", echo)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            url = f"ws://127.0.0.1:{runner.addresses[0][1]}/"
            await talk(url)
            await asyncio.to_thread(talk_blocking, url)
        finally:
            await runner.cleanup()

    asyncio.run(main())
