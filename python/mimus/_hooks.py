"""What calls hooks for `AsyncClient`."""

from collections.abc import Callable, Iterable
from inspect import isawaitable
from typing import Any


async def tell(hooks: Iterable[Callable[[Any], Any]], what: Any) -> None:
    """Calls each hook, and awaits what it gives where that can be awaited."""
    for hook in hooks:
        given = hook(what)
        if isawaitable(given):
            await given
