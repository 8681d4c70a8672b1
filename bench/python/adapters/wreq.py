"""wreq, from Python."""

import asyncio
from pathlib import Path

import uvloop
import wreq
from wreq import blocking

from kit import AsyncPeer, Client, Config, Peer, Setup


def options(setup: Setup) -> dict:
    return {"tls_verify": Path(setup.ca)} if setup.ca else {}


class Sync(Peer):
    def __init__(self, setup: Setup) -> None:
        self.client = blocking.Client(**options(setup))

    def get(self, url):
        response = self.client.get(url)
        return response.status.as_int(), response.bytes()

    def post(self, url, body):
        response = self.client.post(url, body=body)
        return response.status.as_int(), response.bytes()

    def stream(self, url, seen):
        with self.client.get(url) as response:
            status = response.status.as_int()
            for piece in response.stream():
                seen(piece)
            return status

    def close(self):
        self.client.close()


class Async(AsyncPeer):
    def __init__(self, setup: Setup) -> None:
        self.client = wreq.Client(**options(setup))

    async def get(self, url):
        response = await self.client.get(url)
        return response.status.as_int(), await response.bytes()

    async def post(self, url, body):
        response = await self.client.post(url, body=body)
        return response.status.as_int(), await response.bytes()

    async def stream(self, url, seen):
        response = await self.client.get(url)
        status = response.status.as_int()
        async for piece in response.stream():
            seen(piece)
        return status


CLIENT = Client(
    distribution="wreq",
    module="wreq",
    configs={
        "sync": Config("a blocking Client as it comes, which imitates nobody", Sync),
        "async": Config("a Client as it comes", Async, asyncio.new_event_loop),
        "async-uvloop": Config("a Client on uvloop", Async, uvloop.new_event_loop),
    },
)
