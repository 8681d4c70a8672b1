"""The Python package against the test suites of the packages whose API it has, and under clients that it runs.

Not the command line is driven, but the extension module beside it (or what `MIMUS_PYTHON` names). With `MIMUS=curl`
the suites run against the packages they belong to.
"""

from areas.python import adapters, environment, psf_requests

SERVERS = [*environment.SERVERS, *adapters.SERVERS]
CHECKS = [check for module in (psf_requests, adapters) for check in module.book.checks]

__all__ = ["CHECKS", "SERVERS"]
