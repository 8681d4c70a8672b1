"""requests' API over Mimus.

    from mimus import requests

    with requests.Session() as session:
        answer = session.get("https://example.com/", params={"q": "mockingbird"})
        answer.raise_for_status()

Names, arguments and behaviour are requests'; neither it nor urllib3 need be installed, and neither is replaced where
it is. An adapter takes `mimus.Client`'s own options: `session.mount("https://", HTTPAdapter(profile="chrome"))`.
"""

from __future__ import annotations

import importlib
from typing import Any

from mimus import __version__

from . import (
    adapters,
    api,
    auth,
    certs,
    compat,
    cookies,
    exceptions,
    hooks,
    models,
    sessions,
    status_codes,
    structures,
    utils,
)
from .api import delete, get, head, options, patch, post, put, request
from .exceptions import (
    ConnectionError,
    ConnectTimeout,
    FileModeWarning,
    HTTPError,
    JSONDecodeError,
    ReadTimeout,
    RequestException,
    Timeout,
    TooManyRedirects,
    URLRequired,
)
from .models import PreparedRequest, Request, Response
from .sessions import Session, session
from .status_codes import codes

# Asked for by few, and not imported for the rest.
_LAZY = ("help", "packages")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ConnectTimeout",
    "ConnectionError",
    "FileModeWarning",
    "HTTPError",
    "JSONDecodeError",
    "PreparedRequest",
    "ReadTimeout",
    "Request",
    "RequestException",
    "Response",
    "Session",
    "Timeout",
    "TooManyRedirects",
    "URLRequired",
    "__version__",
    "adapters",
    "api",
    "auth",
    "certs",
    "codes",
    "compat",
    "cookies",
    "delete",
    "exceptions",
    "get",
    "head",
    "hooks",
    "models",
    "options",
    "patch",
    "post",
    "put",
    "request",
    "session",
    "sessions",
    "status_codes",
    "structures",
    "utils",
]
