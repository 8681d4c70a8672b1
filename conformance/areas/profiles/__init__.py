"""Browser profiles: what leaves is what left the browser itself, byte for byte where bytes can be equal.

`golden.json` holds what each browser sent, read by a program that shares no code with Mimus."""

from areas.profiles import checks

SERVERS: list = []
CHECKS = checks.book.checks

__all__ = ["CHECKS", "SERVERS"]
