"""Transports that remember what they were asked."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

from mimus._transport import Request, Response

Answer = Response | Awaitable[Response]


class Exchange:
    """A request, and what came of it.

    Attributes:
        request: The request.
        response: What was answered; None where nothing was.
        error: What was raised in the place of an answer.
    """

    __slots__ = ("error", "request", "response")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.response: Response | None = None
        self.error: BaseException | None = None

    def __repr__(self) -> str:
        return f"<Exchange {self.request!r}: {self.response or self.error!r}>"


class Recorder:
    """Remembers exchanges.

    Attributes:
        calls: The exchanges so far: redirects and retries are some of their own.
    """

    def __init__(self) -> None:
        self.calls: list[Exchange] = []

    @property
    def called(self) -> bool:
        """Whether there was an exchange."""
        return bool(self.calls)

    @property
    def call_count(self) -> int:
        """How many there were."""
        return len(self.calls)


class MockTransport(Recorder):
    """A transport that has a function answer, and remembers what it was asked.

    Args:
        handler: Is called with each `Request`, and returns a `Response`; or a coroutine function, for `AsyncClient`.
    """

    def __init__(self, handler: Callable[[Request], Answer]) -> None:
        super().__init__()
        self._handler = handler

    def __call__(self, request: Request) -> Any:
        """Answers a request."""
        exchange = Exchange(request)
        self.calls.append(exchange)
        return recorded(lambda: self._handler(request), exchange)


def recorded(ask: Callable[[], Answer], *exchanges: Exchange) -> Answer:
    """What `ask` gives, of which the exchanges know then."""
    try:
        given = ask()
    except BaseException as error:
        _note(exchanges, error=error)
        raise
    if isawaitable(given):
        return _awaited(given, exchanges)
    _note(exchanges, response=given)
    return given


async def _awaited(given: Awaitable[Response], exchanges: tuple[Exchange, ...]) -> Response:
    try:
        response = await given
    except BaseException as error:
        _note(exchanges, error=error)
        raise
    _note(exchanges, response=response)
    return response


def _note(
    exchanges: tuple[Exchange, ...], response: Response | None = None, error: BaseException | None = None
) -> None:
    for exchange in exchanges:
        exchange.response, exchange.error = response, error
