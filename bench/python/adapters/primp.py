"""primp: a fork of reqwest, from Python."""

import asyncio

import primp

from kit import AsyncPeer, Client, Config, Peer, Setup


def options(setup: Setup) -> dict:
    return {"ca_cert_file": setup.ca} if setup.ca else {}


class Sync(Peer):
    def __init__(self, setup: Setup) -> None:
        self.client = primp.Client(**options(setup))

    def get(self, url):
        response = self.client.get(url)
        return response.status_code, response.content

    def post(self, url, body):
        response = self.client.post(url, content=body)
        return response.status_code, response.content

    def stream(self, url, seen):
        with self.client.get(url, stream=True) as response:
            for piece in response.iter_bytes():
                seen(piece)
            return response.status_code


class Async(AsyncPeer):
    def __init__(self, setup: Setup) -> None:
        self.client = primp.AsyncClient(**options(setup))

    async def get(self, url):
        response = await self.client.get(url)
        return response.status_code, response.content

    async def post(self, url, body):
        response = await self.client.post(url, content=body)
        return response.status_code, response.content

    async def stream(self, url, seen):
        response = await self.client.get(url, stream=True)
        async for piece in response.aiter_bytes():
            seen(piece)
        return response.status_code


CLIENT = Client(
    distribution="primp",
    module="primp",
    configs={
        "sync": Config("a Client as it comes, which imitates nobody", Sync),
        "async": Config("an AsyncClient as it comes", Async, asyncio.new_event_loop),
    },
)
