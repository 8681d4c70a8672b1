"""The two transports, without the base class that each package wants them to have."""

import asyncio

import mimus
from mimus import _errors as errors

from . import calls, dialect, trace
from .settings import client_arguments


class _Settings:
    _CLIENT = None

    def __init__(
        self,
        verify=True,
        cert=None,
        trust_env=True,
        http1=True,
        http2=True,
        limits=None,
        proxy=None,
        uds=None,
        local_address=None,
        retries=0,
        *,
        profile=None,
        resolve=None,
    ):
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


def _is_unset(name, value):
    # None says "without limit" of a timeout, and "as usual" of everything else.
    return value is None and name != "timeout"


class SyncTransport(_Settings):
    _CLIENT = mimus.Client

    def handle_request(self, request):
        """Sends a request, and returns the response at its head."""
        speak = dialect.of(type(request))
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

    def close(self):
        """Closes the connections that nobody uses. Requests after this fail."""
        self._client.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class AsyncTransport(_Settings):
    _CLIENT = mimus.AsyncClient

    async def handle_async_request(self, request):
        """Sends a request, and returns the response at its head. Cancelling frees the connection at once."""
        _need_asyncio()
        speak = dialect.of(type(request))
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

    async def aclose(self):
        """Closes the connections that nobody uses. Requests after this fail."""
        await self._client.aclose()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.aclose()


def _need_asyncio():
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError("mimus needs an asyncio event loop, of whatever kind; this is none (trio?)") from None
