"""HTTP/2 over TLS and by prior knowledge (RFC 9113, RFC 7541)."""

from areas.h2 import connections, exchanges, h2spec
from areas.h2.servers import SERVERS

CHECKS = [check for module in (exchanges, connections, h2spec) for check in module.book.checks]

__all__ = ["CHECKS", "SERVERS"]
