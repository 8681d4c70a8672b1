"""niquests, in an environment of its own: it replaces urllib3."""

import asyncio

import niquests

from kit import AsyncPeer, Client, Config, Peer, Setup


class Session(Peer):
    def __init__(self, setup: Setup) -> None:
        self.session = niquests.Session()
        if setup.ca:
            self.session.verify = setup.ca

    def get(self, url):
        response = self.session.get(url)
        return response.status_code, response.content

    def post(self, url, body):
        response = self.session.post(url, data=body)
        return response.status_code, response.content

    def stream(self, url, seen):
        with self.session.get(url, stream=True) as response:
            for piece in response.iter_content(64 * 1024):
                seen(piece)
            return response.status_code

    def close(self):
        self.session.close()


class Async(AsyncPeer):
    def __init__(self, setup: Setup) -> None:
        self.session = niquests.AsyncSession()
        if setup.ca:
            self.session.verify = setup.ca

    async def get(self, url):
        response = await self.session.get(url)
        return response.status_code, response.content

    async def post(self, url, body):
        response = await self.session.post(url, data=body)
        return response.status_code, response.content

    async def stream(self, url, seen):
        async with await self.session.get(url, stream=True) as response:
            async for piece in await response.iter_content(64 * 1024):
                seen(piece)
            return response.status_code

    async def close(self):
        await self.session.close()


CLIENT = Client(
    distribution="niquests",
    module="niquests",
    configs={
        "sync": Config("a Session as it comes", Session),
        "async": Config("an AsyncSession as it comes", Async, asyncio.new_event_loop),
    },
)
