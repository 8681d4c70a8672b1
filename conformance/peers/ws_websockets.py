"""An echo server made of Python's `websockets`: ports without TLS and with it, certificate, key."""

import asyncio
import ssl
import sys

from websockets.asyncio.server import serve

PIECE = 100_000


def pieces(message):
    """What is large, in fragments."""
    return message if len(message) <= PIECE else [message[at : at + PIECE] for at in range(0, len(message), PIECE)]


async def echo(socket):
    async for message in socket:
        await socket.send(pieces(message))


async def main(plain, secure, cert, key):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    shared = {"max_size": None, "subprotocols": ["superchat"]}
    async with serve(echo, "127.0.0.1", int(plain), **shared), serve(
        echo, "127.0.0.1", int(secure), ssl=context, **shared
    ):
        await asyncio.get_running_loop().create_future()


asyncio.run(main(*sys.argv[1:]))
