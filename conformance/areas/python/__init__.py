"""The Python package against the test suites of the packages whose API it has.

Not the command line is driven, but the extension module beside it (or what `MIMUS_PYTHON` names). With `MIMUS=curl`
the suites run against the packages they belong to.
"""

from areas.python import psf_requests
from areas.python.environment import SERVERS

CHECKS = [check for module in (psf_requests,) for check in module.book.checks]

__all__ = ["CHECKS", "SERVERS"]
