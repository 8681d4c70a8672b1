"""What is called when an answer has come."""

from __future__ import annotations

from typing import Any

HOOKS = ["response"]


def default_hooks() -> dict[str, list[Any]]:
    """A list for each event, with nothing in it."""
    return {event: [] for event in HOOKS}


def dispatch_hook(key: str, hooks: Any, hook_data: Any, **kwargs: Any) -> Any:
    """Gives `hook_data` to each hook of the event `key`; what one returns, unless `None`, goes on to the next."""
    called = (hooks or {}).get(key)
    if not called:
        return hook_data
    for hook in (called,) if callable(called) else called:
        returned = hook(hook_data, **kwargs)
        if returned is not None:
            hook_data = returned
    return hook_data
