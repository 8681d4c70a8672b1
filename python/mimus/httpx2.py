"""Transports by which httpx2's clients run on Mimus.

    client = httpx2.Client(transport=mimus.httpx2.Transport(profile="chrome"))

It is what the SDKs of OpenAI and Anthropic take as `http_client`. Nothing of httpx is imported.
"""

try:
    from httpx2 import AsyncBaseTransport, BaseTransport
except ModuleNotFoundError as _missing:
    if _missing.name != "httpx2":
        raise
    raise ImportError("mimus.httpx2 needs httpx2 (pip install 'mimus[httpx2]')") from None

from mimus._httpx.transports import AsyncTransport as _AsyncTransport
from mimus._httpx.transports import SyncTransport as _SyncTransport

__all__ = ["AsyncTransport", "Transport"]


class Transport(_SyncTransport, BaseTransport):
    __doc__ = _SyncTransport.__doc__


class AsyncTransport(_AsyncTransport, AsyncBaseTransport):
    __doc__ = _AsyncTransport.__doc__
