"""Browser profiles (docs/PROFILES.md): what is sent, against what the browsers sent."""

from areas.profiles import connections, golden, live
from areas.profiles.servers import SERVERS
from areas.profiles.table import report

CHECKS = [check for module in (golden, live, connections) for check in module.book.checks]

__all__ = ["CHECKS", "SERVERS", "report"]
