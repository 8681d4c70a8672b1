"""The `trace` extension: a callable that is told what happens.

The names are those of httpcore. Mimus tells of a connection once the response head has come, so that the callable
hears of all up to there at once, with the seconds that each step took.
"""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, TypeAlias

from mimus import AsyncResponse, Response

from .network import NetworkStream

_Answer: TypeAlias = Response | AsyncResponse
_Event: TypeAlias = tuple[str, dict[str, Any]]


def of(request: Any) -> "Tracer | None":
    """The tracer that a request asks for, or None."""
    callback = request.extensions.get("trace")
    return None if callback is None else Tracer(callback, request)


class Tracer:
    """Tells a callable what becomes of one request."""

    def __init__(self, callback: Callable[[str, dict[str, Any]], Any], request: Any) -> None:
        self._callback = callback
        self._request = request
        self._protocol = "mimus"

    def _head(self, answer: _Answer) -> Iterator[_Event]:
        """What happened up to the head, in order."""
        version = answer.http_version.encode("ascii")
        self._protocol = "http2" if version == b"HTTP/2" else "http11"
        if not answer.reused:
            yield from self._connection(answer)
        reason = answer.reason.encode("latin-1", "replace")
        fields = answer.headers.raw
        yield f"{self._protocol}.send_request_headers.started", {"request": self._sent()}
        yield f"{self._protocol}.send_request_headers.complete", {"return_value": None}
        head: tuple[object, ...] = (answer.status, fields) if self._protocol == "http2" else (version, answer.status, reason, fields)
        yield f"{self._protocol}.receive_response_headers.complete", {"return_value": head}

    def _connection(self, answer: _Answer) -> Iterator[_Event]:
        timings, stream, url = answer.timings, NetworkStream(answer), self._request.url
        asked = {"host": url.host, "port": url.port or (443 if url.scheme == "https" else 80)}
        yield "connection.connect_tcp.started", asked
        yield "connection.connect_tcp.complete", {"return_value": stream, "seconds": timings.connect}
        if answer.tls is not None:
            yield "connection.start_tls.started", {"server_hostname": url.host}
            yield "connection.start_tls.complete", {"return_value": stream, "seconds": timings.tls}

    def _sent(self) -> SimpleNamespace:
        """The request under the names that httpcore has for its parts."""
        url = self._request.url
        target = self._request.extensions.get("target", url.raw_path)
        return SimpleNamespace(
            method=self._request.method.encode("ascii"),
            url=SimpleNamespace(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=target),
            headers=self._request.headers.raw,
        )

    def _failed(self, error: Exception) -> _Event:
        return f"{self._protocol}.request.failed", {"exception": error}

    def _closed(self) -> _Event:
        return f"{self._protocol}.response_closed.complete", {"return_value": None}

    def answered(self, answer: _Answer) -> None:
        """The head is here."""
        for event in self._head(answer):
            self._callback(*event)

    def failed(self, error: Exception) -> None:
        """There will be no head."""
        self._callback(*self._failed(error))

    def closed(self) -> None:
        """The response was closed."""
        self._callback(*self._closed())

    async def aanswered(self, answer: _Answer) -> None:
        """As `answered`, of an asynchronous callable."""
        for event in self._head(answer):
            await self._callback(*event)

    async def afailed(self, error: Exception) -> None:
        """As `failed`."""
        await self._callback(*self._failed(error))

    async def aclosed(self) -> None:
        """As `closed`."""
        await self._callback(*self._closed())
