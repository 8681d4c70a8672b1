"""httpr: reqwest, from Python."""

import asyncio

import httpr

from kit import AsyncPeer, Client, Config, Peer, Setup


def options(setup: Setup) -> dict:
    return {"ca_cert_file": setup.ca} if setup.ca else {}


class Sync(Peer):
    def __init__(self, setup: Setup) -> None:
        self.client = httpr.Client(**options(setup))

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


class Async(AsyncPeer):
    def __init__(self, setup: Setup) -> None:
        self.client = httpr.AsyncClient(max_concurrency=64, **options(setup))

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
    distribution="httpr",
    module="httpr",
    configs={
        "sync": Config("a Client as it comes", Sync),
        "async": Config("an AsyncClient (threads) with max_concurrency=64", Async, asyncio.new_event_loop),
    },
)
