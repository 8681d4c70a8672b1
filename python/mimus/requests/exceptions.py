"""What goes wrong. Everything raised for a request is a `RequestException`, which is an `OSError`.

Beyond what requests has, connection errors and timeouts are also Python's own `ConnectionError` and
`TimeoutError`. What Mimus itself said stands in `__cause__`.
"""

from __future__ import annotations

import builtins
import json
from typing import Any


class RequestException(OSError):
    """A request failed. `request` and `response` are what is known of it, or `None`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.response: Any = kwargs.pop("response", None)
        self.request: Any = kwargs.pop("request", None)
        if self.request is None and self.response is not None:
            self.request = getattr(self.response, "request", None)
        super().__init__(*args, **kwargs)


class BaseHTTPError(Exception):
    """What was found wrong below requests: in an answer's body, for one."""


class InvalidJSONError(RequestException):
    """A value that is not JSON."""


class JSONDecodeError(InvalidJSONError, json.JSONDecodeError):
    """The body is not JSON. `msg`, `doc`, `pos`, `lineno` and `colno` say where."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        json.JSONDecodeError.__init__(self, *args)
        InvalidJSONError.__init__(self, *self.args, **kwargs)

    def __reduce__(self) -> Any:
        # OSError would keep what is printed only, from which this cannot be made again.
        return json.JSONDecodeError.__reduce__(self)


class HTTPError(RequestException):
    """The status says that the client or the server failed."""


class ConnectionError(RequestException, builtins.ConnectionError):
    """There was no connection, or it was lost."""


class ProxyError(ConnectionError):
    """The proxy failed, or refused."""


class SSLError(ConnectionError):
    """TLS failed: a certificate that cannot be trusted, for one."""


class Timeout(RequestException, builtins.TimeoutError):
    """It took longer than it may."""


class ConnectTimeout(ConnectionError, Timeout):
    """Connecting took longer than it may. The request can be sent again without harm."""


class ReadTimeout(Timeout):
    """The server sent nothing for longer than it may."""


class URLRequired(RequestException):
    """There is no URL."""


class TooManyRedirects(RequestException):
    """More redirects than `Session.max_redirects`."""


class MissingSchema(RequestException, ValueError):
    """The URL begins with no scheme, such as `https://`."""


class InvalidSchema(RequestException, ValueError):
    """No adapter serves the URL's scheme."""


class InvalidURL(RequestException, ValueError):
    """The URL cannot be understood."""


class InvalidHeader(RequestException, ValueError):
    """A header field that must not be, sent or received."""


class InvalidProxyURL(InvalidURL):
    """The proxy's URL cannot be understood."""


class ChunkedEncodingError(RequestException):
    """The body ended before its end, or its chunks are none."""


class BrokenAnswer(ConnectionError, ChunkedEncodingError, InvalidHeader):
    """The answer is no HTTP: what of it, is not told apart as requests does, so it is all that requests may raise."""


class ContentDecodingError(RequestException, BaseHTTPError):
    """The body is not what `Content-Encoding` says."""


class StreamConsumedError(RequestException, TypeError):
    """The body has been read already, and was not kept."""


class RetryError(RequestException):
    """No retry is left."""


class UnrewindableBodyError(RequestException):
    """The body cannot be sent a second time."""


class RequestsWarning(Warning):
    """Of all warnings here."""


class FileModeWarning(RequestsWarning, DeprecationWarning):
    """A file to upload is open as text: its length in bytes is a guess."""


class RequestsDependencyWarning(RequestsWarning):
    """Never issued: there are no dependencies."""
