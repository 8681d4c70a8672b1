"""WebSocket over HTTP/1.1 and HTTP/2: Autobahn's fuzzing server, and echo servers by other people."""

from areas.ws import autobahn, echo
from areas.ws.servers import SERVERS

CHECKS = [*echo.book.checks, *autobahn.book.checks]
__all__ = ["CHECKS", "SERVERS"]
