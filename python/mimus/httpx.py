"""Transports by which httpx's clients run on Mimus.

    client = httpx.Client(transport=mimus.httpx.Transport(profile="chrome"))

The transport answers in the classes of the package that the request is of, so that it serves httpx2 as well, where a
class of httpx is not refused: then take `mimus.httpx2`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from httpx import AsyncBaseTransport, BaseTransport
else:
    try:
        from httpx import AsyncBaseTransport, BaseTransport
    except ModuleNotFoundError as _missing:
        if _missing.name != "httpx":
            raise
        try:
            from httpx2 import AsyncBaseTransport, BaseTransport
        except ModuleNotFoundError:
            message = "mimus.httpx needs httpx (pip install 'mimus[httpx]') or httpx2 (pip install 'mimus[httpx2]')"
            raise ImportError(message) from None

from mimus._httpx.transports import AsyncTransport as _AsyncTransport
from mimus._httpx.transports import SyncTransport as _SyncTransport

__all__ = ["AsyncTransport", "Transport"]


class Transport(_SyncTransport, BaseTransport):
    __doc__ = _SyncTransport.__doc__


class AsyncTransport(_AsyncTransport, AsyncBaseTransport):
    __doc__ = _AsyncTransport.__doc__
