"""HTTP/1.1 over TCP and TLS, straight and through proxies (RFC 9110, 9112)."""

from areas.h1 import bodies, connections, damage, messages, policy, proxies, tls
from areas.h1.servers import SERVERS

CHECKS = [
    check
    for module in (messages, policy, bodies, connections, damage, tls, proxies)
    for check in module.book.checks
]

__all__ = ["CHECKS", "SERVERS"]
