"""Server-sent events (HTML standard section 9.2): the Web Platform Tests' cases, and a source in Go."""

from areas.sse import source, wpt
from areas.sse.servers import SERVERS

CHECKS = [check for module in (wpt, source) for check in module.book.checks]

__all__ = ["CHECKS", "SERVERS"]
