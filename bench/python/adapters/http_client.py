"""http.client, of the standard library: a connection, and no more."""

import ssl
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import urlsplit

from kit import Client, Config, Peer, Setup


class Connection(Peer):
    http2 = "it speaks HTTP/1.1 only"

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.connection: HTTPConnection | None = None

    def connect(self, url):
        parts = urlsplit(url)
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=self.setup.ca)
            self.connection = HTTPSConnection(parts.hostname, parts.port, context=context)
        else:
            self.connection = HTTPConnection(parts.hostname, parts.port)
        self.path = parts.path
        return self.connection

    def request(self, method, url, body=None):
        connection = self.connection or self.connect(url)
        connection.request(method, self.path, body)
        return connection.getresponse()

    def get(self, url):
        response = self.request("GET", url)
        return response.status, response.read()

    def post(self, url, body):
        response = self.request("POST", url, body)
        return response.status, response.read()

    def stream(self, url, seen):
        response = self.request("GET", url)
        while piece := response.read1(64 * 1024):
            seen(piece)
        return response.status

    def close(self):
        if self.connection:
            self.connection.close()


CLIENT = Client(
    distribution=None, module="http.client", configs={"sync": Config("a connection that is kept", Connection)}
)
