"""What httpx and its fork httpx2 call by the same names, each with classes of its own."""

import functools
import sys

from mimus import _errors as errors

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

    def __init__(self, package):
        self._package = package
        self.ByteStream = package.ByteStream
        self.SyncByteStream = package.SyncByteStream
        self.AsyncByteStream = package.AsyncByteStream
        self.Response = package.Response
        self.SyncBody = type("SyncBody", (_SyncBody, package.SyncByteStream), {})
        self.AsyncBody = type("AsyncBody", (_AsyncBody, package.AsyncByteStream), {})

    def error(self, name, message, request):
        """The package's exception of this name."""
        return getattr(self._package, name)(message, request=request)

    def translated(self, error, request):
        """The package's exception for one of Mimus."""
        return self.error(_name_of(error), str(error), request)


def _name_of(error):
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
def _dialect(package):
    return Dialect(package)


@functools.cache
def of(kind):
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


class _Body:
    """The body of a response, as its server sent it."""

    def __init__(self, dialect, answer, request, tracer):
        self._dialect = dialect
        self._answer = answer
        self._request = request
        self._tracer = tracer

    def _translated(self, error):
        return self._dialect.translated(error, self._request)


class _SyncBody(_Body):
    def __iter__(self):
        try:
            yield from self._answer.iter_bytes()
        except errors.Error as error:
            raise self._translated(error) from error

    def close(self):
        self._answer.close()
        if self._tracer is not None:
            self._tracer.closed()


class _AsyncBody(_Body):
    async def __aiter__(self):
        try:
            async for piece in self._answer.aiter_bytes():
                yield piece
        except errors.Error as error:
            raise self._translated(error) from error

    async def aclose(self):
        await self._answer.aclose()
        if self._tracer is not None:
            await self._tracer.aclosed()
