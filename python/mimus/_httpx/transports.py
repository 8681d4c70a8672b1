"""The two transports, without the base class that each package wants them to have."""

import asyncio
from typing import Any, ClassVar, Generic, Self, TypeVar

import mimus
from mimus import _errors as errors
from mimus.types import Certificate, Path, ProfileName, Proxies, Resolve, UrlLike, Verify

from . import calls, dialect, trace
from .settings import ForeignLimits, ForeignProxy, client_arguments

_ClientT = TypeVar("_ClientT", mimus.Client, mimus.AsyncClient)


class _Settings(Generic[_ClientT]):
    _CLIENT: ClassVar[Any]
    _client: _ClientT

    def __init__(
        self,
        verify: Verify = True,
        cert: Certificate | None = None,
        trust_env: bool = True,
        http1: bool = True,
        http2: bool = True,
        limits: mimus.Limits | ForeignLimits | None = None,
        proxy: Proxies | UrlLike | ForeignProxy | None = None,
        uds: Path | None = None,
        local_address: str | None = None,
        retries: int | mimus.Retry = 0,
        *,
        profile: ProfileName | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        arguments = client_arguments(
            verify=verify,
            cert=cert,
            trust_env=trust_env,
            http1=http1,
            http2=http2,
            limits=limits,
            proxy=proxy,
            uds=uds,
            local_address=local_address,
            retries=retries,
            profile=profile,
            resolve=resolve,
        )
        self._client = self._CLIENT(**{name: value for name, value in arguments.items() if not _is_unset(name, value)})


def _is_unset(name: str, value: object) -> bool:
    # None says "without limit" of a timeout, "nobody's" of credentials, and "as usual" of everything else.
    return value is None and name not in ("timeout", "auth")


class SyncTransport(_Settings[mimus.Client]):
    """The transport of a `Client` of httpx's, or of its fork httpx2's. Threads may share it.

    What httpx does itself (redirects, cookies, credentials, decoding, default fields) is left to httpx.

    Args:
        verify: True, False, a path to certificates in PEM, or such certificates as bytes.
        cert: As of `mimus.Client`.
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

    _CLIENT = mimus.Client

    def handle_request(self, request: Any) -> Any:
        """Sends a request, and returns the response at its head."""
        speak = dialect.of(type(request))  # type: ignore[arg-type]
        call = calls.Call(speak, request, speak.SyncByteStream)
        tracer = trace.of(request)
        try:
            answer = self._client.request(call.method, call.url, **call.options)
        except errors.Error as error:
            if tracer is not None:
                tracer.failed(error)
            raise speak.translated(error, request) from error
        if tracer is not None:
            tracer.answered(answer)
        return calls.response(speak, answer, speak.SyncBody(speak, answer, request, tracer))

    def close(self) -> None:
        """Closes the connections that nobody uses. Requests after this fail."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncTransport(_Settings[mimus.AsyncClient]):
    """The transport of an `AsyncClient`, on asyncio or uvloop. Arguments and extensions are those of `Transport`."""

    _CLIENT = mimus.AsyncClient

    async def handle_async_request(self, request: Any) -> Any:
        """Sends a request, and returns the response at its head. Cancelling frees the connection at once."""
        _need_asyncio()
        speak = dialect.of(type(request))  # type: ignore[arg-type]
        call = calls.Call(speak, request, speak.AsyncByteStream)
        tracer = trace.of(request)
        try:
            answer = await self._client.request(call.method, call.url, **call.options)
        except errors.Error as error:
            if tracer is not None:
                await tracer.afailed(error)
            raise speak.translated(error, request) from error
        if tracer is not None:
            await tracer.aanswered(answer)
        return calls.response(speak, answer, speak.AsyncBody(speak, answer, request, tracer))

    async def aclose(self) -> None:
        """Closes the connections that nobody uses. Requests after this fail."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _need_asyncio() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError("mimus needs an asyncio event loop, of whatever kind; this is none (trio?)") from None
