"""Which requests a route is for."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, quote, urljoin, urlsplit, urlunsplit

from mimus._mimus import Headers
from mimus._transport import Request
from mimus.types import HeaderFields

URLPattern: TypeAlias = str | re.Pattern[str]
Pairs: TypeAlias = Mapping[str, object] | Iterable[tuple[str, object]]

_PORTS = {"http": 80, "https": 443}
# What RFC 3986 lets stand as it is, and what is escaped already.
_SAFE = "%/:@!$&'()*+,;=~-._?"


class Pattern:
    """What a request must be like.

    Args:
        method: Its method; None for any.
        url: Its URL; of a query those parameters that are there. Or a regular expression for its beginning. None for
            any.
        params: Parameters that the query must have.
        headers: Fields that it must have.
        content: What its body must be.
        json: The value that its body must be the JSON of.
        form: The fields that its body must have as a form.
        where: Whether it is such, in the user's own words.
    """

    def __init__(
        self,
        method: str | None,
        url: URLPattern | None,
        *,
        params: Pairs | None = None,
        headers: HeaderFields | None = None,
        content: str | bytes | None = None,
        json: Any = None,
        form: Pairs | None = None,
        where: Callable[[Request], object] | None = None,
    ) -> None:
        self.method = None if method is None else method.upper()
        self.params = pairs(params)
        self.url: URLPattern | None = url
        if isinstance(url, str):
            parts = urlsplit(normal(url))
            self.params = parse_qsl(parts.query, keep_blank_values=True) + self.params
            self.url = urlunsplit(parts._replace(query=""))
        self.headers = [] if headers is None else Headers(headers).pairs()
        self.content = content.encode() if isinstance(content, str) else content
        self.json = json
        self.form = pairs(form)
        self.where = where

    def mismatches(self, request: Request) -> list[str]:
        """Why a request is not for this route: nothing if it is."""
        why = []
        if self.method is not None and request.method != self.method:
            why.append(f"the method is {request.method}")
        whole = normal(request.url)
        bare = whole.partition("?")[0]
        if isinstance(self.url, str):
            if bare != self.url:
                why.append(f"the URL is {bare}")
        elif self.url is not None and not self.url.match(whole):
            why.append(f"the URL is {whole}")
        why += _missing("parameter", self.params, request.params)
        for name, value in self.headers:
            if value not in request.headers.get_list(name):
                why.append(f"the field {name!r} is {request.headers.get(name)!r}")
        if self.content is not None and request.content != self.content:
            why.append(f"the body is {_shown(request.content)}")
        if self.json is not None and _loaded(request) != self.json:
            why.append(f"the body is {_shown(request.content)}")
        if self.form:
            why += _missing("field of the form", self.form, request.form)
        if not why and self.where is not None and not self.where(request):
            why.append(f"{getattr(self.where, '__name__', self.where)} says no")
        return why

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        url = self.url.pattern if isinstance(self.url, re.Pattern) else self.url
        words = [self.method or "any method", url or "any URL"]
        words += [f"with parameter {name}={value}" for name, value in self.params]
        words += [f"with field {name}: {value}" for name, value in self.headers]
        words += [f"with {name}={value} in the form" for name, value in self.form]
        if self.content is not None:
            words.append(f"with the body {_shown(self.content)}")
        if self.json is not None:
            words.append(f"with the JSON {self.json!r}")
        if self.where is not None:
            words.append(f"where {getattr(self.where, '__name__', self.where)}")
        return " ".join(words)


def pairs(given: Pairs | None) -> list[tuple[str, str]]:
    """Names and values as they are sent: a list of values repeats its name."""
    if given is None:
        return []
    items = given.items() if isinstance(given, Mapping) else given
    return [
        (str(name), _sent(one))
        for name, value in items
        for one in (value if isinstance(value, (list, tuple)) else (value,))
    ]


def _sent(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def absolute(url: URLPattern | None, base: str) -> URLPattern | None:
    """The URL of a route of a router with this base."""
    if not isinstance(url, str) or urlsplit(url).scheme:
        return url
    if not base:
        raise ValueError(f"{url!r} is relative, and the router has no base_url")
    return urljoin(base.rstrip("/") + "/", url.lstrip("/"))


def normal(url: str) -> str:
    """A URL as it is sent: without default port and fragment, escaped where it must be."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not host.isascii():
        host = host.encode("idna").decode()
    if ":" in host:
        host = f"[{host}]"
    if parts.port is not None and parts.port != _PORTS.get(parts.scheme):
        host = f"{host}:{parts.port}"
    path = quote(parts.path or "/", safe=_SAFE)
    return urlunsplit((parts.scheme, host, path, quote(parts.query, safe=_SAFE + "[]"), ""))


def _missing(what: str, wanted: list[tuple[str, str]], there: list[tuple[str, str]]) -> list[str]:
    left, why = list(there), []
    for name, value in wanted:
        if (name, value) in left:
            left.remove((name, value))
            continue
        values = [other for known, other in there if known == name]
        why.append(f"the {what} {name!r} is {values[0]!r}" if values else f"there is no {what} {name!r}")
    return why


def _loaded(request: Request) -> object:
    try:
        return json.loads(request.content)
    except ValueError:
        return None


def _shown(content: bytes) -> str:
    return repr(content if len(content) <= 80 else content[:77] + b"...")
