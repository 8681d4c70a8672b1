"""httpmorph."""

import asyncio

import httpmorph

from kit import AsyncPeer, Client, Config, Peer, Setup


class Session(Peer):
    def __init__(self, setup: Setup) -> None:
        self.session = httpmorph.Session()
        # It takes no authority by a setting. Unverified is less work, and the only way here.
        self.verify = {} if setup.ca is None else {"verify": False}

    def get(self, url):
        response = self.session.get(url, **self.verify)
        return response.status_code, response.body

    def post(self, url, body):
        response = self.session.post(url, data=body, **self.verify)
        return response.status_code, response.body

    def close(self):
        self.session.close()


class Async(AsyncPeer):
    http2 = "its AsyncClient speaks HTTP/1.1 only"

    def __init__(self, setup: Setup) -> None:
        self.client = httpmorph.AsyncClient()
        self.verify = {} if setup.ca is None else {"verify": False}

    async def open(self):
        await self.client.__aenter__()

    async def get(self, url):
        response = await self.client.get(url, **self.verify)
        return response.status_code, response.content

    async def post(self, url, body):
        response = await self.client.post(url, data=body, **self.verify)
        return response.status_code, response.content

    async def close(self):
        await self.client.close()


CLIENT = Client(
    distribution="httpmorph",
    module="httpmorph",
    configs={
        "sync": Config("a Session as it comes, but that it verifies no certificate", Session),
        "async": Config("an AsyncClient, which says 200 whatever comes", Async, asyncio.new_event_loop),
    },
)
