"""The exceptions of the package. Each is also of the built-in kind that it is a case of."""

# For annotations alone: see `_functions`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mimus._mimus import AsyncResponse, Headers, Response


class Error(Exception):
    """Why a call failed.

    Attributes:
        kind: What went wrong, in one word: "timeout", "connect", "protocol"...
        phase: Where: "pool", "resolve", "connect", "proxy", "tls", "send", "head" or "body"; None where no exchange
            had begun.
        url: The URL of the request that failed, without user name and password.
        was_sent: Whether the server may have acted on the request.
        is_retryable: Whether the same call may be made again whatever its method, and may succeed then.
    """

    kind: str = "error"
    phase: str | None = None
    url: str | None = None
    was_sent: bool = False
    is_retryable: bool = False

    def __init__(
        self,
        message: str = "",
        *,
        kind: str | None = None,
        phase: str | None = None,
        url: str | None = None,
        was_sent: bool = False,
        is_retryable: bool = False,
    ) -> None:
        super().__init__(message)
        if kind is not None:
            self.kind = kind
        self.phase = phase
        self.url = url
        self.was_sent = was_sent
        self.is_retryable = is_retryable


class RequestError(Error):
    """The request, or the client's settings, cannot be used; nothing was sent."""

    kind = "request"


class InvalidURL(RequestError, ValueError):
    """What was given as a URL is none that can be asked."""


class ConnectError(Error, ConnectionError):
    """No connection could be made."""

    kind = "connect"


class ResolveError(ConnectError):
    """The name has no address."""

    kind = "resolve"


class TlsError(ConnectError):
    """The TLS handshake failed."""

    kind = "tls"


class CertificateError(TlsError):
    """The server's certificate was not accepted."""

    kind = "certificate"


class ProxyError(ConnectError):
    """The proxy refused, misbehaved, or wants (other) credentials."""

    kind = "proxy"


class RequestTimeout(Error, TimeoutError):
    """A timeout of this client fired, and `phase` says in which phase."""

    kind = "timeout"


class ConnectTimeout(RequestTimeout, ConnectError):
    """It fired before there was a connection."""


class ReadTimeout(RequestTimeout):
    """It fired while the answer was waited for or read."""


class WriteTimeout(RequestTimeout):
    """It fired while the request was being sent."""


class PoolTimeout(RequestTimeout):
    """It fired while the client's limits allowed no further connection."""


class ConnectionLost(Error, ConnectionError):
    """An open connection failed, or its peer ended it before the exchange was over."""

    kind = "closed"


class StreamReset(ConnectionLost, ConnectionResetError):
    """The server gave up this exchange (HTTP/2); the connection may go on."""

    kind = "reset"


class ProtocolError(Error):
    """The peer broke the protocol."""

    kind = "protocol"


class NotOffered(ProtocolError):
    """The server does not offer what the call needs, such as HTTP/2. Nothing was sent."""

    kind = "not-offered"


class LimitExceeded(Error):
    """A limit of this client was exceeded: the size of a head, of a decoded body..."""

    kind = "limit"


class DecodeError(Error, ValueError):
    """The body could not be decoded."""

    kind = "decode"


class BodyError(Error):
    """The body to be sent failed to give its bytes, or cannot be sent a second time."""

    kind = "upload"


class RedirectError(Error):
    """A redirect leads to where it cannot be followed."""

    kind = "redirect"


class TooManyRedirects(RedirectError):
    """There were more redirects than the call may follow."""


class StreamConsumed(Error, RuntimeError):
    """The body was read, or closed, before."""

    kind = "consumed"


class StatusError(Error):
    """The status is 4xx or 5xx, and `raise_for_status` was asked.

    Attributes:
        response: The response.
        status: Its status.
    """

    kind = "status"

    def __init__(
        self, message: str = "", *, response: "Response | AsyncResponse | None" = None, **rest: "Any"
    ) -> None:
        rest.setdefault("was_sent", True)
        super().__init__(message, **rest)
        self.response: Response | AsyncResponse | None = response
        self.status: int | None = None if response is None else response.status

    def __reduce__(self) -> "tuple[Any, ...]":
        # Without the response, which stays where its connection is.
        return type(self), self.args, {**self.__dict__, "response": None}


class NotEventStream(StatusError):
    """The answer is no event stream: its status or its type says so.

    Attributes:
        response: The response, where there is one to read on; a source of events keeps the rest instead.
        status: Its status.
        headers: Its fields.
        content: The beginning of its body, at most 64 KiB, where there is no response.
    """

    def __init__(
        self,
        message: str = "",
        *,
        response: "Response | AsyncResponse | None" = None,
        status: int | None = None,
        headers: "Headers | None" = None,
        content: bytes = b"",
        **rest: "Any",
    ) -> None:
        rest.setdefault("was_sent", True)
        super().__init__(message, response=response, **rest)
        self.status = status if response is None else response.status
        self.headers = headers if response is None else response.headers
        self.content = content


class WebSocketError(Error):
    """A WebSocket could not be opened, or failed."""

    kind = "websocket"


class WebSocketRefused(WebSocketError, ConnectError):
    """The server answered the handshake with something else.

    Attributes:
        response: Its response, whose body can be read.
        status: The status of that.
    """

    response: "Response | AsyncResponse | None" = None

    @property
    def status(self) -> int | None:
        return None if self.response is None else self.response.status


class WebSocketClosed(WebSocketError, ConnectionLost):
    """The WebSocket is closed: by the server, by ourselves, or because the connection was lost.

    Attributes:
        code: Why: what the server said, 1005 if it gave no code, 1006 if it did not close in order.
        reason: Why, in its words; may be empty.
    """

    def __init__(self, message: str = "", *, code: int = 1006, reason: str = "", **rest: "Any") -> None:
        super().__init__(message, **rest)
        self.code = code
        self.reason = reason


class WebSocketTimeout(WebSocketError, ReadTimeout):
    """The server was silent for too long: it left a ping or a close unanswered, or `idle_timeout` was over."""


class WebSocketProtocolError(WebSocketError, ProtocolError, ConnectionError):
    """The server broke the protocol, and the connection was given up."""


class WebSocketTooLarge(WebSocketError, LimitExceeded, ValueError):
    """A message is larger than `max_message_size`, and the connection was given up."""
