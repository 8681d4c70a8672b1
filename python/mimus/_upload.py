"""The task that iterates over a request's body."""

from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import suppress
from typing import Any


async def pump(pieces: AsyncIterable[Any], sink: Any) -> None:
    """Hands what an async iterable gives to the connection that sends it, and what it raises to whoever called."""
    try:
        async for piece in pieces:
            if not await sink.send(piece):
                return
        sink.end()
    except BaseException as error:
        sink.fail(error)
        if not isinstance(error, Exception):
            raise
    finally:
        if isinstance(pieces, AsyncGenerator):
            with suppress(Exception):
                await pieces.aclose()
