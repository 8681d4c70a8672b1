"""From a request of httpx to a call of Mimus's, and from the answer to a response."""

import functools
import ipaddress
from typing import Any

import mimus

from .dialect import Dialect
from .network import NetworkStream

_SCHEMES = (b"http", b"https")


@functools.lru_cache(maxsize=64)
def _timeout(
    connect: float | None, read: float | None, write: float | None, pool: float | None
) -> mimus.Timeout:
    return mimus.Timeout(connect=connect, read=read, write=write, pool=pool)


class Call:
    """The arguments of a client's `request`.

    Raises:
        The package's `UnsupportedProtocol` or `LocalProtocolError`: It cannot be asked.
    """

    __slots__ = ("method", "options", "url")

    def __init__(self, dialect: Dialect, request: Any, pieces: type[Any]) -> None:
        """Of `request`; a body that is not in memory must be of the class `pieces`."""
        extensions = request.extensions
        self.method: str = request.method
        self.options: dict[str, Any] = {"headers": request.headers.raw, "stream": True}
        self.url = _url(dialect, request)
        limits = extensions.get("timeout")
        if limits is not None:
            self.options["timeout"] = _timeout(
                limits.get("connect"), limits.get("read"), limits.get("write"), limits.get("pool")
            )
        sni = extensions.get("sni_hostname")
        if sni is not None:
            self._name_server(dialect, request, sni)
        content = _content(dialect, request, pieces)
        if content is not None:
            self.options["content"] = content
        self.options.update(extensions.get("mimus", ()))

    def _name_server(self, dialect: Dialect, request: Any, name: str | bytes) -> None:
        """Asks for `name` where the URL has an address: in the handshake, and of the certificate."""
        name = name.decode("ascii") if isinstance(name, bytes) else name
        url = request.url
        if name == url.host:
            return
        try:
            address = str(ipaddress.ip_address(url.host))
        except ValueError:
            message = "sni_hostname needs a URL with an IP address, or use `resolve` of the transport"
            raise dialect.error("LocalProtocolError", message, request) from None
        self.options["resolve"] = {name: address}
        port = "" if url.port is None else f":{url.port}"
        target = self.url.split("/", 3)[3]
        self.url = f"{url.scheme}://{name}{port}/{target}"


def _url(dialect: Dialect, request: Any) -> str:
    """The URL without user name and password: httpx has made a field of them, where they are wanted."""
    url = request.url
    if url.raw_scheme not in _SCHEMES:
        message = f"the URL must begin with http:// or https://, not {url.scheme!r}"
        raise dialect.error("UnsupportedProtocol", message, request)
    if not url.raw_host:
        raise dialect.error("LocalProtocolError", "the URL has no host", request)
    if url.port is not None and url.port > 0xFFFF:
        raise dialect.error("ConnectError", f"there is no port {url.port}", request)
    target = request.extensions.get("target", url.raw_path)
    if not target.startswith(b"/"):
        message = f"the target of a request must be a path, not {target!r}"
        raise dialect.error("LocalProtocolError", message, request)
    text: bytes = url.raw_scheme + b"://" + url.netloc + target
    return text.decode("ascii")


def _content(dialect: Dialect, request: Any, pieces: type[Any]) -> Any:
    stream = request.stream
    if isinstance(stream, dialect.ByteStream):
        content = b"".join(stream)
        if "transfer-encoding" in request.headers:
            return iter((content,))
        return content or None
    if not isinstance(stream, pieces):
        kind = "an async" if pieces is dialect.AsyncByteStream else "a sync"
        raise RuntimeError(f"the body of the request must be {kind} stream for this transport")
    # Many a stream is of both kinds.
    return iter(stream) if pieces is dialect.SyncByteStream else stream


def response(dialect: Dialect, answer: mimus.Response | mimus.AsyncResponse, body: Any) -> Any:
    """The package's response, whose body is read by `body`."""
    return dialect.Response(
        status_code=answer.status,
        headers=answer.headers.raw,
        stream=body,
        extensions={
            "http_version": answer.http_version.encode("ascii"),
            "reason_phrase": answer.reason.encode("latin-1", "replace"),
            "network_stream": NetworkStream(answer),
            "mimus": answer,
        },
    )
