"""aiohttp."""

import asyncio
import ssl

import aiohttp
import uvloop

from kit import AsyncPeer, Client, Config, Setup


class Session(AsyncPeer):
    http2 = "it speaks HTTP/1.1 only"

    def __init__(self, setup: Setup) -> None:
        verify = ssl.create_default_context(cafile=setup.ca) if setup.ca else True
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=verify))

    async def get(self, url):
        async with self.session.get(url) as response:
            return response.status, await response.read()

    async def post(self, url, body):
        async with self.session.post(url, data=body) as response:
            return response.status, await response.read()

    async def stream(self, url, seen):
        async with self.session.get(url) as response:
            async for piece in response.content.iter_any():
                seen(piece)
            return response.status

    async def close(self):
        await self.session.close()


CLIENT = Client(
    distribution="aiohttp",
    module="aiohttp",
    configs={
        "async": Config("a ClientSession as it comes", Session, asyncio.new_event_loop),
        "async-uvloop": Config("a ClientSession on uvloop", Session, uvloop.new_event_loop),
    },
)
