"""What httpx and its fork httpx2 call by the same names, each with classes of its own."""

import functools
import sys
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mimus import AsyncResponse, Response
from mimus import _errors as errors

if TYPE_CHECKING:
    from .trace import Tracer

_AnswerT = TypeVar("_AnswerT", Response, AsyncResponse)

PACKAGES = ("httpx", "httpx2")

# The first class that an error is of decides.
_NAMES = (
    (errors.ConnectTimeout, "ConnectTimeout"),
    (errors.ReadTimeout, "ReadTimeout"),
    (errors.WriteTimeout, "WriteTimeout"),
    (errors.PoolTimeout, "PoolTimeout"),
    (errors.RequestTimeout, "TimeoutException"),
    (errors.ProxyError, "ProxyError"),
    (errors.ConnectError, "ConnectError"),
    (errors.StreamReset, "RemoteProtocolError"),
    (errors.ProtocolError, "RemoteProtocolError"),
    (errors.LimitExceeded, "RemoteProtocolError"),
    (errors.DecodeError, "RemoteProtocolError"),
    (errors.RequestError, "LocalProtocolError"),
    (errors.BodyError, "LocalProtocolError"),
    (errors.StreamConsumed, "ReadError"),
)


class Dialect:
    """One of the packages, by its module."""

    def __init__(self, package: ModuleType) -> None:
        self._package = package
        self.ByteStream: type[Any] = package.ByteStream
        self.SyncByteStream: type[Any] = package.SyncByteStream
        self.AsyncByteStream: type[Any] = package.AsyncByteStream
        self.Response: type[Any] = package.Response
        self.SyncBody: type[Any] = type("SyncBody", (_SyncBody, package.SyncByteStream), {})
        self.AsyncBody: type[Any] = type("AsyncBody", (_AsyncBody, package.AsyncByteStream), {})

    def error(self, name: str, message: str, request: Any) -> Exception:
        """The package's exception of this name."""
        kind: type[Exception] = getattr(self._package, name)
        return kind(message, request=request)  # type: ignore[call-arg]

    def translated(self, error: errors.Error, request: Any) -> Exception:
        """The package's exception for one of Mimus."""
        return self.error(_name_of(error), str(error), request)


def _name_of(error: errors.Error) -> str:
    for kind, name in _NAMES:
        if isinstance(error, kind):
            return name
    if isinstance(error, errors.ConnectionLost):
        # An end where there should have been more breaks the protocol.
        if error.kind == "closed":
            return "RemoteProtocolError"
        return "WriteError" if error.phase == "send" else "ReadError"
    return "TransportError"


@functools.cache
def _dialect(package: ModuleType) -> Dialect:
    return Dialect(package)


@functools.cache
def of(kind: type[Any]) -> Dialect:
    """The dialect of a class of requests.

    Args:
        kind: `Request` of one of the packages, or a subclass.

    Raises:
        TypeError: It is neither's.
    """
    for base in kind.__mro__:
        name = base.__module__.partition(".")[0]
        if base.__name__ == "Request" and name in PACKAGES:
            return _dialect(sys.modules[name])
    raise TypeError(f"{kind.__qualname__} is a request of neither {' nor '.join(PACKAGES)}")


class _Body(Generic[_AnswerT]):
    """The body of a response, as its server sent it."""

    def __init__(self, dialect: Dialect, answer: _AnswerT, request: Any, tracer: "Tracer | None") -> None:
        self._dialect = dialect
        self._answer: _AnswerT = answer
        self._request = request
        self._tracer = tracer

    def _translated(self, error: errors.Error) -> Exception:
        return self._dialect.translated(error, self._request)


class _SyncBody(_Body[Response]):
    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._answer.iter_bytes()
        except errors.Error as error:
            raise self._translated(error) from error

    def close(self) -> None:
        self._answer.close()
        if self._tracer is not None:
            self._tracer.closed()


class _AsyncBody(_Body[AsyncResponse]):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._answer.aiter_bytes():
                yield piece
        except errors.Error as error:
            raise self._translated(error) from error

    async def aclose(self) -> None:
        await self._answer.aclose()
        if self._tracer is not None:
            await self._tracer.aclosed()
