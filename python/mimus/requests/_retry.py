"""`max_retries`: when a request is sent again, and how long to wait before. urllib3's `Retry` will do as well."""

from __future__ import annotations

import email.utils
import importlib
import random
import time
from collections.abc import Collection
from typing import Any, NamedTuple

import mimus

from .exceptions import BaseHTTPError

_BEFORE = ("pool", "resolve", "connect", "proxy", "tls")


class MaxRetryError(BaseHTTPError):
    """No retry is left. `reason` is what went wrong last."""

    def __init__(self, pool: Any, url: str, reason: Any = None) -> None:
        super().__init__(f"no retry is left for {url}: {reason}")
        self.pool = pool
        self.url = url
        self.reason = reason


class ResponseError(BaseHTTPError):
    """The answer was one that is to be asked for again."""


class RequestHistory(NamedTuple):
    """One attempt that did not do."""

    method: str | None
    url: str | None
    error: Exception | None
    status: int | None
    redirect_location: str | None


class Retry:
    """How often a request is sent again, of what causes, and after how long.

    Args:
        total: Retries of all causes; `None` for as many as the others allow, `False` for none that hides the cause.
        connect: Of these, where nothing was sent.
        read: Where something was; `False` raises at once.
        redirect: Unused: redirects are the session's.
        status: For an answer whose status is in `status_forcelist`.
        other: For any other cause.
        allowed_methods: Those that may be sent twice, when something was sent; `None` for all.
        status_forcelist: Statuses that are worth another attempt.
        backoff_factor: Seconds before the third attempt, half of that doubled each time; the second waits for nothing.
        backoff_max: The most seconds of all.
        raise_on_redirect: Unused.
        raise_on_status: Whether the last answer is an error, or given out.
        history: The attempts before.
        respect_retry_after_header: Whether to wait as long as the server asks.
        remove_headers_on_redirect: Unused.
        backoff_jitter: Up to so many seconds more, at random.
        retry_after_max: The most seconds that the server may ask for.
    """

    DEFAULT_ALLOWED_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PUT", "TRACE"})
    RETRY_AFTER_STATUS_CODES = frozenset({413, 429, 503})
    DEFAULT_REMOVE_HEADERS_ON_REDIRECT = frozenset({"Authorization", "Cookie", "Proxy-Authorization"})
    DEFAULT_BACKOFF_MAX = 120
    DEFAULT_RETRY_AFTER_MAX = 6 * 60 * 60

    def __init__(
        self,
        total: int | bool | None = 10,
        connect: int | None = None,
        read: int | bool | None = None,
        redirect: int | bool | None = None,
        status: int | None = None,
        other: int | None = None,
        allowed_methods: Collection[str] | None = DEFAULT_ALLOWED_METHODS,
        status_forcelist: Collection[int] | None = None,
        backoff_factor: float = 0,
        backoff_max: float = DEFAULT_BACKOFF_MAX,
        raise_on_redirect: bool = True,
        raise_on_status: bool = True,
        history: tuple[RequestHistory, ...] | None = None,
        respect_retry_after_header: bool = True,
        remove_headers_on_redirect: Collection[str] = DEFAULT_REMOVE_HEADERS_ON_REDIRECT,
        backoff_jitter: float = 0.0,
        retry_after_max: int = DEFAULT_RETRY_AFTER_MAX,
    ) -> None:
        self.total = total
        self.connect = connect
        self.read = read
        self.redirect = redirect
        self.status = status
        self.other = other
        self.allowed_methods = allowed_methods
        self.status_forcelist: Collection[int] = status_forcelist or frozenset()
        self.backoff_factor = backoff_factor
        self.backoff_max = backoff_max
        self.raise_on_redirect = raise_on_redirect
        self.raise_on_status = raise_on_status
        self.history: tuple[RequestHistory, ...] = history or ()
        self.respect_retry_after_header = respect_retry_after_header
        self.remove_headers_on_redirect: frozenset[str] = frozenset(name.lower() for name in remove_headers_on_redirect)
        self.backoff_jitter = backoff_jitter
        self.retry_after_max = retry_after_max

    @classmethod
    def from_int(cls, retries: Any, redirect: Any = True, default: Any = None) -> Any:
        """`retries` if it has its own rules, or so many."""
        if retries is None:
            retries = cls() if default is None else default
        return cls(retries) if isinstance(retries, (int, bool)) else retries

    def new(self, **kwargs: Any) -> Retry:
        """The same but for `kwargs`."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, **kwargs)
        return made

    def is_exhausted(self) -> bool:
        """Whether one of the counts has run out."""
        counts = (self.total, self.connect, self.read, self.redirect, self.status, self.other)
        return any(count is not None and count is not False and count < 0 for count in counts)

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        """Whether an answer of that status is to be asked for again."""
        if not self._allows(method):
            return False
        if status_code in self.status_forcelist:
            return True
        asked = self.respect_retry_after_header and has_retry_after
        return bool(self.total and asked and status_code in self.RETRY_AFTER_STATUS_CODES)

    def _allows(self, method: str | None) -> bool:
        return not self.allowed_methods or (method or "").upper() in self.allowed_methods

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: Any = None,
        error: Exception | None = None,
        _pool: Any = None,
        _stacktrace: Any = None,
    ) -> Retry:
        """What is left after an attempt that did not do. Raises `error`, or `MaxRetryError`, if that is nothing."""
        if self.total is False and error is not None:
            raise error
        status, cause = None, error
        if error is not None:
            which = _cause(error)
            of_cause = getattr(self, which)
            if which == "read" and (of_cause is False or not self._allows(method)):
                raise error
        else:
            which, of_cause = "status", self.status
            status = response.status if response is not None else None
            cause = ResponseError(f"status {status}")
        left = {"total": _less(self.total), which: _less(of_cause)}
        made = self.new(history=(*self.history, RequestHistory(method, url, error, status, None)), **left)
        if made.is_exhausted():
            raise MaxRetryError(_pool, url or "", cause) from error
        return made

    def get_backoff_time(self) -> float:
        """Seconds to wait before the next attempt."""
        failed = len(self.history)
        if failed <= 1:
            return 0
        wait = self.backoff_factor * 2 ** (failed - 1) + random.random() * self.backoff_jitter
        return float(max(0.0, min(self.backoff_max, wait)))

    def parse_retry_after(self, retry_after: str) -> float:
        """Seconds of a `Retry-After` (RFC 9110 section 10.2.3). Raises `ValueError`."""
        if retry_after.strip().isdecimal():
            seconds = float(retry_after)
        else:
            seconds = email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time()
        return float(min(max(seconds, 0.0), self.retry_after_max))

    def get_retry_after(self, response: Any) -> float | None:
        """Seconds that the server asks to wait for."""
        asked = response.headers.get("Retry-After")
        if asked is None:
            return None
        try:
            return self.parse_retry_after(asked)
        except ValueError:
            return None

    def sleep(self, response: Any = None) -> None:
        """Waits before the next attempt."""
        asked = self.get_retry_after(response) if self.respect_retry_after_header and response is not None else None
        wait = asked or self.get_backoff_time()
        if wait > 0:
            time.sleep(wait)

    def __repr__(self) -> str:
        names = ("total", "connect", "read", "redirect", "status")
        return f"Retry({', '.join(f'{name}={getattr(self, name)}' for name in names)})"


def _cause(error: Exception) -> str:
    if not isinstance(error, mimus.Error):
        return "other"
    return "read" if error.was_sent or error.phase not in _BEFORE else "connect"


def _less(count: Any) -> Any:
    return count if count is None or count is False else count - 1


NONE = Retry(0, read=False)
"""What an adapter has without being told: Mimus itself sends again what was surely not served."""


def theirs(retries: Any, error: Exception) -> Exception:
    """`error` as the rules of `retries` know it: those of urllib3 go by its own exceptions."""
    if isinstance(retries, Retry):
        return error
    known: Any = importlib.import_module(f"{type(retries).__module__.partition('.')[0]}.exceptions")
    kind: type[Exception] = known.ConnectTimeoutError if _cause(error) == "connect" else known.ProtocolError
    return kind(str(error))
