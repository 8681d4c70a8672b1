"""curl_cffi: libcurl by cffi."""

import asyncio

from curl_cffi import requests

from kit import AsyncPeer, Client, Config, Peer, Setup


def options(setup: Setup) -> dict:
    return {"verify": setup.ca} if setup.ca else {}


class Session(Peer):
    def __init__(self, setup: Setup) -> None:
        self.session = requests.Session(**options(setup))

    def get(self, url):
        response = self.session.get(url)
        return response.status_code, response.content

    def post(self, url, body):
        response = self.session.post(url, data=body)
        return response.status_code, response.content

    def stream(self, url, seen):
        response = self.session.get(url, stream=True)
        for piece in response.iter_content():
            seen(piece)
        response.close()
        return response.status_code

    def close(self):
        self.session.close()


class Async(AsyncPeer):
    def __init__(self, setup: Setup) -> None:
        self.session = requests.AsyncSession(max_clients=64, **options(setup))

    async def get(self, url):
        response = await self.session.get(url)
        return response.status_code, response.content

    async def post(self, url, body):
        response = await self.session.post(url, data=body)
        return response.status_code, response.content

    async def close(self):
        await self.session.close()


CLIENT = Client(
    distribution="curl_cffi",
    module="curl_cffi",
    configs={
        "sync": Config("a Session as it comes, which imitates nobody", Session),
        "async": Config("an AsyncSession with max_clients=64, of 10", Async, asyncio.new_event_loop),
    },
)
