"""What code that answers in the place of a server gets and gives. `mimus.testing` has more for tests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from mimus._mimus import Headers

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from mimus.types import AsyncContent, HeaderFields


class Request:
    """A request as it would have been sent.

    Attributes:
        method: The method.
        url: The URL, after redirects the present one.
        headers: The fields in the order and case of the wire: those of client, cookies and credentials too.
        content: The body, all of it.
        http_version: "HTTP/1.1" or "HTTP/2".
    """

    __slots__ = ("content", "headers", "http_version", "method", "url")

    def __init__(
        self,
        method: str,
        url: str,
        headers: Headers | None = None,
        content: bytes = b"",
        http_version: Literal["HTTP/1.1", "HTTP/2"] = "HTTP/1.1",
    ) -> None:
        self.method = method
        self.url = url
        self.headers = Headers() if headers is None else headers
        self.content = content
        self.http_version = http_version

    @property
    def host(self) -> str:
        """The host of the URL."""
        return urlsplit(self.url).hostname or ""

    @property
    def path(self) -> str:
        """The path of the URL, without the query."""
        return urlsplit(self.url).path

    @property
    def params(self) -> list[tuple[str, str]]:
        """The parameters of the query, decoded."""
        return parse_qsl(urlsplit(self.url).query, keep_blank_values=True)

    @property
    def form(self) -> list[tuple[str, str]]:
        """The fields of a body that is a form (not a multipart one), decoded."""
        return parse_qsl(self.text, keep_blank_values=True)

    @property
    def text(self) -> str:
        """The body as text, in UTF-8."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """The value of a body in JSON.

        Raises:
            ValueError: It is none.
        """
        return json.loads(self.content)

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.url}>"


class Response:
    """What is answered.

    Args:
        status: The status.
        headers: Fields: a mapping, or a list of pairs, whose order, case and duplicates are kept.
        content: The body: a string, any buffer, a file or path, or an iterable of strings and buffers, which comes
            piece by piece. One that can be read only once serves one answer.
        text: A body of text.
        html: A body of HTML.
        json: A value that the body is the JSON of.
        trailers: Fields behind the body.
        http_version: The version that the answer comes in. Default: the request's.

    Raises:
        TypeError: There is more than one body.
    """

    __slots__ = ("content", "headers", "http_version", "status", "trailers")

    content: AsyncContent

    def __init__(
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
    ) -> None:
        if sum(body is not None for body in (content, text, html, json)) > 1:
            raise TypeError("content, text, html and json are different bodies: give one")
        self.status = status
        self.headers = Headers() if headers is None else Headers(headers)
        self.trailers = None if trailers is None else Headers(trailers)
        self.http_version = http_version
        self.content = b"" if content is None else content
        if text is not None:
            self._fill(text, "text/plain; charset=utf-8")
        elif html is not None:
            self._fill(html, "text/html; charset=utf-8")
        elif json is not None:
            self._fill(_to_json(json), "application/json")

    def _fill(self, text: str, media_type: str) -> None:
        self.content = text.encode("utf-8")
        if "content-type" not in self.headers:
            self.headers.add("Content-Type", media_type)

    def __repr__(self) -> str:
        return f"<Response {self.status}>"


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


async def answer(given: Awaitable[Any], sink: Any) -> None:
    """The task that awaits an answer, for `AsyncClient`."""
    try:
        sink.done(await given)
    except BaseException as error:
        sink.fail(error)
        if not isinstance(error, Exception):
            raise
