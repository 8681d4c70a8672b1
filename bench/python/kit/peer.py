"""What a measured client has to be able to do: one exchange."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Piece = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Setup:
    """What a client is made for."""

    http2: bool
    """It is to speak HTTP/2, by ALPN; HTTP/1.1 if not."""
    ca: str | None
    """Path of the certificate of the authority that the server's is from; None without TLS."""


class Peer:
    """A client that blocks. What it cannot do it leaves None."""

    http2: str | None = None
    """Why it does not speak HTTP/2, if so."""

    def __init__(self, setup: Setup) -> None:
        """Makes the client. Nothing is connected yet."""

    get: Callable[[str], tuple[int, Piece]]
    """GETs a URL: the status and the body, collected in the client's own way."""

    post: Callable[[str, bytes], tuple[int, Piece]]
    """POSTs a body with its length: the same."""

    stream: Callable[[str, Callable[[Piece], object]], int] | None = None
    """GETs a URL and hands out each piece of the body as it comes: the status."""

    def close(self) -> None:
        """Lets go of connections."""


class AsyncPeer:
    """A client on asyncio, made within its loop."""

    http2: str | None = None

    def __init__(self, setup: Setup) -> None:
        """As of a `Peer`."""

    get: Callable[[str], Awaitable[tuple[int, Piece]]]
    post: Callable[[str, bytes], Awaitable[tuple[int, Piece]]]
    stream: Callable[[str, Callable[[Piece], object]], Awaitable[int]] | None = None

    async def open(self) -> None:
        """What has to be awaited before the first exchange."""

    async def close(self) -> None:
        """Lets go of connections."""


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration that a client can be measured in."""

    about: str
    """What it is, in a sentence."""
    make: Callable[[Setup], Peer] | Callable[[Setup], AsyncPeer]
    loop: Callable[[], asyncio.AbstractEventLoop] | None = None
    """What makes the loop that it runs on; None for one that blocks."""


@dataclass(frozen=True, slots=True)
class Client:
    """A measured client."""

    distribution: str | None
    """What it is called where it is installed; None for what comes with Python."""
    module: str
    """What its user imports."""
    configs: dict[str, Config]
