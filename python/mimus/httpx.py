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
    except ModuleNotFoundError as missing:
        if missing.name != "httpx":
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
    """The transport of a `Client`. Threads may share it.

    What httpx does itself (redirects, cookies, credentials, decoding, default fields) is left to httpx.

    Args:
        verify: True, False, a path to certificates in PEM, or such certificates as bytes.
        cert: A path to certificate and key in PEM, (certificate, key), or (archive, None, password) for PKCS#12.
        trust_env: Whether the environment's proxies count.
        http1: Whether HTTP/1.1 may be spoken.
        http2: Whether HTTP/2 may be: over TLS where the server offers it; without `http1`, with and without TLS.
        limits: `mimus.Limits`, or httpx's, whose `max_keepalive_connections` is taken for each origin.
        proxy: A URL, a mapping of schemes to URLs, False for none, or httpx's `Proxy`. Default: the environment's.
        uds: The path of a Unix socket to connect to in place of the URL's host.
        local_address: The address to connect from, or the name of an interface.
        retries: How often it is tried again to make a connection; or a `mimus.Retry`.
        profile: The browser to look like on the wire.
        resolve: A mapping of "host" or "host:port" to addresses.

    Of a request's extensions it obeys `timeout`, `trace`, `sni_hostname` (for URLs with an IP address), `target` (a
    path), and `mimus`: a mapping of further keyword arguments of `mimus.Client.request`. A response's are
    `http_version`, `reason_phrase`, `network_stream` (`get_extra_info` alone), and `mimus`, the response of Mimus.

    Raises:
        mimus.RequestError: A setting cannot be used.
        TypeError: `verify` is an `ssl.SSLContext`.
    """


class AsyncTransport(_AsyncTransport, AsyncBaseTransport):
    """The transport of an `AsyncClient`, on asyncio or uvloop. Arguments and extensions are those of `Transport`."""
