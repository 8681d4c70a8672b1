"""Mimus, as its user gets it; only the authority of the bench's server is added, where TLS is measured."""

import asyncio

import mimus
import uvloop

from kit import AsyncPeer, Client, Config, Peer, Setup


def options(setup: Setup) -> dict:
    chosen: dict = {"http_version": "2"} if setup.http2 else {}
    if setup.ca:
        chosen["verify"] = setup.ca
    return chosen


class Sync(Peer):
    def __init__(self, setup: Setup) -> None:
        self.client = mimus.Client(**options(setup))

    def get(self, url):
        response = self.client.get(url)
        return response.status, response.content

    def post(self, url, body):
        response = self.client.post(url, content=body)
        return response.status, response.content

    def stream(self, url, seen):
        with self.client.get(url, stream=True) as response:
            for piece in response.iter_bytes():
                seen(piece)
            return response.status

    def close(self):
        self.client.close()


class Async(AsyncPeer):
    def __init__(self, setup: Setup) -> None:
        self.client = mimus.AsyncClient(**options(setup))

    async def get(self, url):
        response = await self.client.get(url)
        return response.status, response.content

    async def post(self, url, body):
        response = await self.client.post(url, content=body)
        return response.status, response.content

    async def stream(self, url, seen):
        async with await self.client.get(url, stream=True) as response:
            async for piece in response.aiter_bytes():
                seen(piece)
            return response.status

    async def close(self):
        await self.client.aclose()


CLIENT = Client(
    distribution="mimus",
    module="mimus",
    configs={
        "sync": Config("a Client with its default settings", Sync),
        "async": Config("an AsyncClient with its default settings", Async, asyncio.new_event_loop),
        "async-uvloop": Config("an AsyncClient on uvloop", Async, uvloop.new_event_loop),
    },
)
