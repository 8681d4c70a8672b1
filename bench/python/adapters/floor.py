"""The least that an exchange can cost in Python: the same bytes over a bare socket, and over a bare
`asyncio.Protocol`. They look at no more of an answer than they must to find its end."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from functools import lru_cache
from urllib.parse import urlsplit

import uvloop

from kit import AsyncPeer, Client, Config, Peer, Setup

HTTP2 = "it is an exchange over HTTP/1.1"
LENGTH = b"Content-Length: "
READ = 64 * 1024


@lru_cache
def origin(url: str) -> tuple[str, int, bool]:
    """Host and port of a URL, and whether it asks for TLS."""
    parts = urlsplit(url)
    tls = parts.scheme == "https"
    return parts.hostname or "", parts.port or (443 if tls else 80), tls


@lru_cache
def head(method: str, url: str, length: int | None) -> bytes:
    """The head of a request."""
    parts = urlsplit(url)
    framing = "" if length is None else f"Content-Length: {length}\r\n"
    return f"{method} {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n{framing}\r\n".encode()


def context(setup: Setup) -> ssl.SSLContext:
    """What verifies the server."""
    return ssl.create_default_context(cafile=setup.ca)


def begin(data: bytes) -> tuple[int, int, int]:
    """Status, where the body begins, and its length, of an answer whose head is all there."""
    end = data.index(b"\r\n\r\n") + 4
    at = data.index(LENGTH, 0, end) + len(LENGTH)
    return int(data[9:12]), end, int(data[at : data.index(b"\r", at)])


class Raw(Peer):
    """Blocking."""

    http2 = HTTP2

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.socket: socket.socket | None = None

    def connect(self, url: str) -> socket.socket:
        host, port, tls = origin(url)
        raw = socket.create_connection((host, port))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context(self.setup).wrap_socket(raw, server_hostname=host) if tls else raw
        return self.socket

    def exchange(self, url: str, request: bytes) -> tuple[int, bytes | bytearray]:
        connection = self.socket or self.connect(url)
        connection.sendall(request)
        data = connection.recv(READ)
        while b"\r\n\r\n" not in data:
            more = connection.recv(READ)
            if not more:
                raise ConnectionError("the head is not whole")
            data += more
        status, at, length = begin(data)
        if len(data) - at == length:
            return status, data[at:]
        body = bytearray(length)
        view = memoryview(body)
        filled = len(data) - at
        view[:filled] = data[at:]
        while filled < length:
            came = connection.recv_into(view[filled:])
            if not came:
                raise ConnectionError("the body is not whole")
            filled += came
        return status, body

    def get(self, url: str) -> tuple[int, bytes | bytearray]:
        return self.exchange(url, head("GET", url, None))

    def post(self, url: str, body: bytes) -> tuple[int, bytes | bytearray]:
        return self.exchange(url, head("POST", url, len(body)) + body)

    def stream(self, url, seen) -> int:
        """A chunked body: chunks are cut out by their lengths, and seen as they come."""
        connection = self.socket or self.connect(url)
        connection.sendall(head("GET", url, None))
        data = connection.recv(READ)
        while b"\r\n\r\n" not in data:
            data += connection.recv(READ)
        status, at = int(data[9:12]), data.index(b"\r\n\r\n") + 4
        buffer = bytearray(4 * READ)
        view = memoryview(buffer)
        # `left` counts the bytes of the present chunk with the CRLF behind it.
        left, line = 0, b""
        rest = memoryview(data)[at:]
        while True:
            while rest:
                if left:
                    here = rest[:left]
                    seen(here[: max(0, min(len(here), left - 2))])
                    left -= len(here)
                    rest = rest[len(here) :]
                    continue
                end = bytes(rest[:20]).find(b"\n") + 1
                if not end:
                    line += rest
                    break
                size = int(line + rest[:end], 16)
                line, rest = b"", rest[end:]
                if not size:
                    # The CRLF behind the last chunk.
                    while len(rest) < 2:
                        rest = bytes(rest) + connection.recv(2 - len(rest))
                    return status
                left = size + 2
            came = connection.recv_into(view)
            if not came:
                raise ConnectionError("the body is not whole")
            rest = view[:came]

    def close(self) -> None:
        if self.socket:
            self.socket.close()


class Exchange(asyncio.Protocol):
    """A connection, with at most one exchange under way."""

    def connection_made(self, transport) -> None:
        self.transport = transport
        self.done: asyncio.Future | None = None

    def send(self, request: bytes) -> asyncio.Future:
        self.data: bytes | bytearray = b""
        self.end = 0
        self.done = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self.done

    def data_received(self, data: bytes) -> None:
        if self.end:
            self.data += data
        else:
            self.data = self.data + data if self.data else data
            if b"\r\n\r\n" not in self.data:
                return
            self.status, self.at, length = begin(self.data)
            self.end = self.at + length
            if len(self.data) < self.end:
                self.data = bytearray(self.data)
        if len(self.data) == self.end and self.done:
            self.done.set_result((self.status, self.data[self.at :]))
            self.done = None

    def connection_lost(self, error) -> None:
        if self.done:
            self.done.set_exception(error or ConnectionError("the body is not whole"))


class Protocol(AsyncPeer):
    """On asyncio, with a list of idle connections."""

    http2 = HTTP2

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.idle: deque[Exchange] = deque()

    async def connect(self, url: str) -> Exchange:
        host, port, tls = origin(url)
        tls_by = context(self.setup) if tls else None
        loop = asyncio.get_running_loop()
        _, exchange = await loop.create_connection(Exchange, host, port, ssl=tls_by)
        return exchange

    async def exchange(self, url: str, request: bytes):
        connection = self.idle.pop() if self.idle else await self.connect(url)
        answer = await connection.send(request)
        self.idle.append(connection)
        return answer

    async def get(self, url: str):
        return await self.exchange(url, head("GET", url, None))

    async def post(self, url: str, body: bytes):
        return await self.exchange(url, head("POST", url, len(body)) + body)

    async def close(self) -> None:
        for connection in self.idle:
            connection.transport.close()


CLIENT = Client(
    distribution=None,
    module="socket",
    configs={
        "sync": Config("a blocking socket", Raw),
        "async": Config("an asyncio.Protocol", Protocol, asyncio.new_event_loop),
        "async-uvloop": Config("an asyncio.Protocol on uvloop", Protocol, uvloop.new_event_loop),
    },
)
