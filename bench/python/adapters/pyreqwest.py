"""pyreqwest: reqwest's builders, from Python."""

import asyncio

import uvloop
from pyreqwest.client import ClientBuilder, SyncClientBuilder

from kit import AsyncPeer, Client, Config, Peer, Setup


def built(builder, setup: Setup):
    if setup.ca:
        with open(setup.ca, "rb") as file:
            builder = builder.add_root_certificate_pem(file.read())
    return builder.build()


class Sync(Peer):
    def __init__(self, setup: Setup) -> None:
        self.client = built(SyncClientBuilder().http2(setup.http2), setup)

    def get(self, url):
        response = self.client.get(url).build().send()
        return response.status, response.bytes()

    def post(self, url, body):
        response = self.client.post(url).body_bytes(body).build().send()
        return response.status, response.bytes()

    def stream(self, url, seen):
        with self.client.get(url).build_streamed() as response:
            reader = response.body_reader
            while (piece := reader.read_chunk()) is not None:
                seen(piece)
            return response.status

    def close(self):
        self.client.close()


class Async(AsyncPeer):
    def __init__(self, setup: Setup) -> None:
        self.client = built(ClientBuilder().http2(setup.http2), setup)

    async def get(self, url):
        response = await self.client.get(url).build().send()
        return response.status, await response.bytes()

    async def post(self, url, body):
        response = await self.client.post(url).body_bytes(body).build().send()
        return response.status, await response.bytes()

    async def stream(self, url, seen):
        async with self.client.get(url).build_streamed() as response:
            reader = response.body_reader
            while (piece := await reader.read_chunk()) is not None:
                seen(piece)
            return response.status

    async def close(self):
        await self.client.close()


CLIENT = Client(
    distribution="pyreqwest",
    module="pyreqwest.client",
    configs={
        "sync": Config("a SyncClient as it comes", Sync),
        "async": Config("a Client as it comes", Async, asyncio.new_event_loop),
        "async-uvloop": Config("a Client on uvloop", Async, uvloop.new_event_loop),
    },
)
