"""httpx."""

import asyncio
import ssl

import httpx

from kit import AsyncPeer, Client, Config, Peer, Setup


def options(setup: Setup) -> dict:
    verify = ssl.create_default_context(cafile=setup.ca) if setup.ca else True
    return {"http2": setup.http2, "verify": verify}


class Sync(Peer):
    def __init__(self, setup: Setup, **more) -> None:
        self.client = httpx.Client(**options(setup), **more)

    def get(self, url):
        response = self.client.get(url)
        return response.status_code, response.content

    def post(self, url, body):
        response = self.client.post(url, content=body)
        return response.status_code, response.content

    def stream(self, url, seen):
        with self.client.stream("GET", url) as response:
            for piece in response.iter_bytes():
                seen(piece)
            return response.status_code

    def close(self):
        self.client.close()


class Best(Sync):
    def __init__(self, setup: Setup) -> None:
        super().__init__(setup, trust_env=False)


class Async(AsyncPeer):
    def __init__(self, setup: Setup) -> None:
        self.client = httpx.AsyncClient(**options(setup))

    async def get(self, url):
        response = await self.client.get(url)
        return response.status_code, response.content

    async def post(self, url, body):
        response = await self.client.post(url, content=body)
        return response.status_code, response.content

    async def stream(self, url, seen):
        async with self.client.stream("GET", url) as response:
            async for piece in response.aiter_bytes():
                seen(piece)
            return response.status_code

    async def close(self):
        await self.client.aclose()


CLIENT = Client(
    distribution="httpx",
    module="httpx",
    configs={
        "sync": Config("a Client as it comes", Sync),
        "sync-best": Config("a Client with trust_env=False", Best),
        "async": Config("an AsyncClient as it comes", Async, asyncio.new_event_loop),
    },
)
