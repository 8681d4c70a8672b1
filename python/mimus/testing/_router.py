"""Routes: which request gets which answer."""

from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Any, Literal, Self

from mimus import _mimus
from mimus._transport import Request, Response
from mimus.types import AsyncContent, HeaderFields

from ._patterns import Pairs, Pattern, URLPattern, absolute, normal
from ._transports import Answer, Exchange, Recorder, recorded


class UnmatchedRequest(AssertionError):
    """No route is for a request.

    Attributes:
        request: The request.
    """

    def __init__(self, message: str, request: Request) -> None:
        super().__init__(message)
        self.request = request


class Route(Recorder):
    """A kind of request, and what is answered: each answer that is added serves one request, the last all further ones.
    Without any it is a Response of status 200.

    Attributes:
        calls: The exchanges so far.
        pattern: Which requests it is for.
    """

    def __init__(self, pattern: Pattern) -> None:
        super().__init__()
        self.pattern = pattern
        self._answers: list[Callable[[Request], Answer]] = []
        self._optional = False
        self._turn = 0
        self._lock = Lock()

    def respond(
        self,
        status: int = 200,
        *,
        headers: HeaderFields | None = None,
        content: AsyncContent | None = None,
        text: str | None = None,
        html: str | None = None,
        json: Any = None,
        trailers: HeaderFields | None = None,
        http_version: Literal["HTTP/1.1", "HTTP/2"] | None = None,
    ) -> Self:
        """Adds an answer. Takes the arguments of `Response`."""
        make = partial(
            Response,
            status,
            headers=headers,
            content=content,
            text=text,
            html=html,
            json=json,
            trailers=trailers,
            http_version=http_version,
        )
        make()
        return self.handle(lambda _: make())

    def raises(self, error: BaseException | type[BaseException]) -> Self:
        """Adds a failure: `mimus.ConnectError` and its kin are what they would be if they had happened on the way, so
        that they are retried where those are."""

        def fail(_: Request) -> Response:
            raise error

        return self.handle(fail)

    def handle(self, handler: Callable[[Request], Answer]) -> Self:
        """Adds a function that answers; for `AsyncClient` it may be a coroutine function."""
        self._answers.append(handler)
        return self

    def optional(self) -> Self:
        """Has `Router.assert_all_called` leave this route out."""
        self._optional = True
        return self

    def assert_called(self, times: int | None = None) -> None:
        """Fails unless the route was called; or was, so many times.

        Raises:
            AssertionError: It was not.
        """
        if times is None and not self.calls:
            raise AssertionError(f"nobody called {self.pattern}")
        if times is not None and len(self.calls) != times:
            raise AssertionError(f"{self.pattern} was called {len(self.calls)} times, not {times}")

    def assert_called_once(self) -> None:
        """Fails unless the route was called once.

        Raises:
            AssertionError: It was not.
        """
        self.assert_called(1)

    def reset(self) -> None:
        """Forgets the calls, and begins with the first answer again."""
        with self._lock:
            self.calls.clear()
            self._turn = 0

    def answer(self, request: Request, exchange: Exchange) -> Answer:
        """Answers a request, and remembers it."""
        with self._lock:
            self.calls.append(exchange)
            turn, self._turn = self._turn, self._turn + 1
        if not self._answers:
            return Response()
        return self._answers[min(turn, len(self._answers) - 1)](request)

    def must_be_called(self) -> bool:
        """Whether nobody called it who should have."""
        return not self.calls and not self._optional

    def __repr__(self) -> str:
        return f"<Route {self.pattern}: {len(self.calls)} calls>"


class Router(Recorder):
    """Answers requests by routes, of which the first that fits has its say. It is a transport; entered, as a context
    manager, it answers all calls of the process until it is left.

    Args:
        base_url: What relative URLs of routes are relative to.
        assert_all_called: Whether leaving it fails if a route was not called.
        assert_all_matched: Whether leaving it fails if there was a request without a route, though the tested code
            went on.
        pass_through: Beginnings of URLs that are left to their servers.

    Attributes:
        calls: The exchanges so far, of all routes.
        routes: The routes.
        unmatched: Requests that no route was for.
    """

    def __init__(
        self,
        base_url: str = "",
        *,
        assert_all_called: bool = True,
        assert_all_matched: bool = True,
        pass_through: Iterable[str] = (),
    ) -> None:
        super().__init__()
        self.routes: list[Route] = []
        self.unmatched: list[Request] = []
        self._base = base_url
        self._all_called = assert_all_called
        self._all_matched = assert_all_matched
        self._passed = [pass_through] if isinstance(pass_through, str) else list(pass_through)
        self._before: list[Any] = []

    def route(
        self,
        method: str | None = None,
        url: URLPattern | None = None,
        *,
        params: Pairs | None = None,
        headers: HeaderFields | None = None,
        content: str | bytes | None = None,
        json: Any = None,
        form: Pairs | None = None,
        where: Callable[[Request], object] | None = None,
    ) -> Route:
        """A route for such requests: the one that there is, or a new one.

        Args:
            method: Their method; None for any.
            url: Their URL; of a query those parameters that are there. Or a regular expression for its beginning.
                None for any.
            params: Parameters that the query must have.
            headers: Fields that they must have.
            content: What the body must be.
            json: The value that the body must be the JSON of.
            form: The fields that the body must have as a form.
            where: Called with a request that fits, says whether it is one.
        """
        pattern = Pattern(
            method,
            absolute(url, self._base),
            params=params,
            headers=headers,
            content=content,
            json=json,
            form=form,
            where=where,
        )
        for route in self.routes:
            if route.pattern == pattern:
                return route
        route = Route(pattern)
        self.routes.append(route)
        return route

    def get(self, url: URLPattern | None = None, **like: Any) -> Route:
        """A route for GET. See `route`."""
        return self.route("GET", url, **like)

    def head(self, url: URLPattern | None = None, **like: Any) -> Route:
        """A route for HEAD. See `route`."""
        return self.route("HEAD", url, **like)

    def options(self, url: URLPattern | None = None, **like: Any) -> Route:
        """A route for OPTIONS. See `route`."""
        return self.route("OPTIONS", url, **like)

    def post(self, url: URLPattern | None = None, **like: Any) -> Route:
        """A route for POST. See `route`."""
        return self.route("POST", url, **like)

    def put(self, url: URLPattern | None = None, **like: Any) -> Route:
        """A route for PUT. See `route`."""
        return self.route("PUT", url, **like)

    def patch(self, url: URLPattern | None = None, **like: Any) -> Route:
        """A route for PATCH. See `route`."""
        return self.route("PATCH", url, **like)

    def delete(self, url: URLPattern | None = None, **like: Any) -> Route:
        """A route for DELETE. See `route`."""
        return self.route("DELETE", url, **like)

    def pass_through(self, url: str) -> None:
        """Leaves requests whose URL begins like this to their server."""
        self._passed.append(url)

    def passes(self, method: str, url: str) -> bool:
        """Whether a request is left to its server."""
        return any(_begins(url, start) for start in self._passed)

    def __call__(self, request: Request) -> Any:
        """Answers a request.

        Raises:
            UnmatchedRequest: No route is for it.
        """
        exchange = Exchange(request)
        self.calls.append(exchange)
        return recorded(lambda: self._answer(request, exchange), exchange)

    def _answer(self, request: Request, exchange: Exchange) -> Answer:
        routes = list(self.routes)
        reasons = []
        for route in routes:
            why = route.pattern.mismatches(request)
            if not why:
                return route.answer(request, exchange)
            reasons.append((route, why))
        self.unmatched.append(request)
        raise UnmatchedRequest(_explained(request, reasons), request)

    def reset(self) -> None:
        """Forgets the calls; the routes stay, and begin with their first answers."""
        self.calls.clear()
        self.unmatched.clear()
        for route in self.routes:
            route.reset()

    def assert_all_called(self) -> None:
        """Fails if a route was not called that is not optional.

        Raises:
            AssertionError: Such is the case.
        """
        missed = [str(route.pattern) for route in self.routes if route.must_be_called()]
        if missed:
            raise AssertionError("\n  ".join(["nobody called", *missed]))

    def assert_all_matched(self) -> None:
        """Fails if there was a request that no route was for.

        Raises:
            UnmatchedRequest: Such is the case.
        """
        if self.unmatched:
            asked = [f"{request.method} {request.url}" for request in self.unmatched]
            raise UnmatchedRequest("\n  ".join(["no route was for", *asked]), self.unmatched[0])

    def check(self) -> None:
        """Asserts what it was made to assert.

        Raises:
            AssertionError: Something of it does not hold.
        """
        if self._all_matched:
            self.assert_all_matched()
        if self._all_called:
            self.assert_all_called()

    def start(self) -> None:
        """Answers all calls from now on, of clients without a transport of their own."""
        self._before.append(_mimus.intercept(self))

    def stop(self) -> None:
        """Leaves them to whom they were left before."""
        _mimus.intercept(self._before.pop())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        if kind is None:
            self.check()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)


def _begins(url: str, start: str) -> bool:
    url, start = normal(url), normal(start)
    # Not example.com.evil for example.com, nor port 80 for 8080.
    return url.startswith(start)


_SHOWN = 3


def _explained(request: Request, reasons: list[tuple[Route, list[str]]]) -> str:
    """Says what was asked, and which routes were near."""
    asked = f"{request.method} {request.url}"
    if not reasons:
        return f"no route is for {asked}: there is none at all"

    def distance(reason: tuple[Route, list[str]]) -> tuple[int, float]:
        route, why = reason
        return len(why), -SequenceMatcher(None, asked, str(route.pattern)).ratio()

    lines = [f"no route is for {asked}"]
    for route, why in sorted(reasons, key=distance)[:_SHOWN]:
        lines.append(f"  {route.pattern}: {', and '.join(why)}")
    if len(reasons) > _SHOWN:
        lines.append(f"  and {len(reasons) - _SHOWN} more")
    return "\n".join(lines)
