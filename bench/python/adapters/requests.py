"""requests."""

import requests

from kit import Client, Config, Peer, Setup


class Session(Peer):
    http2 = "it speaks HTTP/1.1 only"

    def __init__(self, setup: Setup) -> None:
        self.session = requests.Session()
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


class Best(Session):
    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.session.trust_env = False


CLIENT = Client(
    distribution="requests",
    module="requests",
    configs={
        "sync": Config("a Session as it comes", Session),
        "sync-best": Config("a Session with trust_env=False: it does not search the environment", Best),
    },
)
