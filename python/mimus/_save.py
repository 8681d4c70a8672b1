"""A response's body to a file."""

import asyncio
from collections.abc import Callable
from os import PathLike
from typing import Any

# What is handed to a thread at a time: a write takes longer than the way there.
_PIECE = 1024 * 1024


async def save(
    response: Any,
    path: str | PathLike[str],
    total: int | None,
    progress: Callable[[int, int | None], object] | None,
) -> int:
    """Writes where blocking delays nobody; how many bytes."""
    done = 0
    file = await asyncio.to_thread(open, path, "wb")
    try:
        async for piece in response.aiter_bytes(_PIECE):
            await asyncio.to_thread(file.write, piece)
            done += len(piece)
            if progress is not None:
                progress(done, total)
    finally:
        await asyncio.to_thread(file.close)
    return done
