"""urllib3."""

import urllib3

from kit import Client, Config, Peer, Setup


class Pool(Peer):
    http2 = "it speaks HTTP/1.1 only, but for an experiment that has to be injected"

    def __init__(self, setup: Setup) -> None:
        self.pool = urllib3.PoolManager(ca_certs=setup.ca)

    def get(self, url):
        response = self.pool.request("GET", url)
        return response.status, response.data

    def post(self, url, body):
        response = self.pool.request("POST", url, body=body)
        return response.status, response.data

    def stream(self, url, seen):
        response = self.pool.request("GET", url, preload_content=False)
        for piece in response.stream(64 * 1024):
            seen(piece)
        response.release_conn()
        return response.status

    def close(self):
        self.pool.clear()


CLIENT = Client(
    distribution="urllib3", module="urllib3", configs={"sync": Config("a PoolManager as it comes", Pool)}
)
