"""What the arguments of calls and clients are, for annotations. Nothing here does anything.

    def fetch(client: mimus.Client, url: str, **options: Unpack[mimus.types.RequestOptions]) -> bytes:
        return client.get(url, **options).content

Import it by its name: `import mimus` leaves it out, which keeps that fast.
"""

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence, Set
from http.cookiejar import CookieJar
from ipaddress import IPv4Address, IPv6Address
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar

from mimus import _transport
from mimus._mimus import (
    AsyncResponse,
    Basic,
    Bearer,
    Deflate,
    Digest,
    Limits,
    OutgoingRequest,
    Reconnect,
    Response,
    Retry,
    Timeout,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer
else:
    # `collections.abc` has the real one from Python 3.12 on.
    Buffer = bytes | bytearray | memoryview

_K_co = TypeVar("_K_co", covariant=True)
_V_co = TypeVar("_V_co", covariant=True)

__all__ = [
    "URL",
    "AsyncClientOptions",
    "AsyncContent",
    "AsyncEventOptions",
    "AsyncFiles",
    "AsyncHooks",
    "AsyncRequestOptions",
    "AsyncStreamOptions",
    "AsyncTransport",
    "Auth",
    "Certificate",
    "ClientOptions",
    "CommonClientOptions",
    "CommonOptions",
    "Content",
    "CookieFields",
    "EventOptions",
    "Files",
    "Form",
    "HasItems",
    "HeaderFields",
    "Hooks",
    "HttpVersion",
    "Kind",
    "Pairs",
    "Parameters",
    "Path",
    "ProfileName",
    "Proxies",
    "Readable",
    "RequestOptions",
    "Resolve",
    "SessionOptions",
    "StreamOptions",
    "Transport",
    "UrlLike",
    "Verify",
    "WebSocketOptions",
]


class UrlLike(Protocol):
    """A URL of another package's (httpx, yarl, pydantic), whose string is the URL."""

    @property
    def scheme(self) -> str:
        """What stands before its "://"."""
        ...

    @property
    def host(self) -> str | None:
        """Its host."""
        ...


class HasItems(Protocol[_K_co, _V_co]):
    """A mapping, of which nothing but its items are asked."""

    def items(self) -> Iterable[tuple[_K_co, _V_co]]:
        """Name and value of each."""
        ...


class Readable(Protocol):
    """What is read as a file is."""

    def read(self, size: int, /) -> str | Buffer:
        """Returns up to `size` characters or bytes; none at the end."""
        ...


# An `Iterable` of them would be right and too wide: a mapping is one too, and then mypy takes no hint for a display.
Pairs: TypeAlias = Sequence[tuple[_K_co, _V_co]] | Iterator[tuple[_K_co, _V_co]] | Set[tuple[_K_co, _V_co]]
"""Names and values, in order."""

URL: TypeAlias = str | UrlLike
"""Where a call goes: text, or an object whose string it is."""

Path: TypeAlias = str | PathLike[str]
"""The path of a file."""

_Text: TypeAlias = str | bytes | int
_Value: TypeAlias = str | bytes | float | None
_Values: TypeAlias = _Value | list[str] | list[bytes] | list[int] | list[float] | list[_Value] | tuple[_Value, ...]

Parameters: TypeAlias = HasItems[str, _Values] | Pairs[str, _Values]
"""Parameters of a query or a form: None is left out, a list repeats its name."""

HeaderFields: TypeAlias = HasItems[str | bytes, _Text] | Pairs[str | bytes, _Text]
"""The fields of a message, in order."""

CookieFields: TypeAlias = HasItems[str | bytes, _Text] | Pairs[str | bytes, _Text]
"""Cookies by name."""

Content: TypeAlias = str | Buffer | PathLike[str] | Readable | Iterable[str | Buffer]
"""A body: a string, any buffer, a path, a file, or an iterable of strings and buffers."""

AsyncContent: TypeAlias = Content | AsyncIterable[str | Buffer]
"""A body of a call that is awaited."""

Form: TypeAlias = HasItems[str, _Values] | Sequence[tuple[str, _Values]] | Set[tuple[str, _Values]]
"""The fields of a form."""

_File: TypeAlias = (
    Content
    | tuple[str | None, Content]
    | tuple[str | None, Content, str | None]
    | tuple[str | None, Content, str | None, HeaderFields | None]
)
_AsyncFile: TypeAlias = (
    AsyncContent
    | tuple[str | None, AsyncContent]
    | tuple[str | None, AsyncContent, str | None]
    | tuple[str | None, AsyncContent, str | None, HeaderFields | None]
)

Files: TypeAlias = HasItems[str, _File] | Pairs[str, _File]
"""Files of a form: contents, or (file name, contents[, media type[, headers]])."""

AsyncFiles: TypeAlias = HasItems[str, _AsyncFile] | Pairs[str, _AsyncFile]
"""Files of a form of a call that is awaited."""

Auth: TypeAlias = tuple[str, str] | Basic | Digest | Bearer | Callable[[OutgoingRequest], object]
"""Who is asking: (user, password), a scheme's credentials, or what sets them in the headers of a request."""

Proxies: TypeAlias = str | HasItems[str, str | None] | Literal[False]
"""A URL for everything, URLs by scheme ("http", "https", "all", and "no_proxy" for a list of hosts), or none."""

Verify: TypeAlias = bool | str | PathLike[str] | bytes
"""Whether the server's certificate is checked, or a path to authorities in PEM, or those as bytes."""

Certificate: TypeAlias = Path | tuple[Path, Path] | tuple[Path, Path | None, str | None]
"""A path to certificate and key in PEM, (certificate, key[, password]), or (archive, None, password) for PKCS#12."""

Resolve: TypeAlias = HasItems[str, str | list[str] | tuple[str, ...]]
"""Addresses by "host" or "host:port"."""

HttpVersion: TypeAlias = Literal["1.1", "1", "HTTP/1.1", "2", "h2", "h2c", "HTTP/2"]
"""The version of HTTP to speak; "h2c" is HTTP/2 without TLS."""

Kind: TypeAlias = Literal[
    "async-script",
    "beacon",
    "favicon",
    "fetch",
    "font",
    "form-post",
    "iframe",
    "image",
    "navigate",
    "preflight",
    "script",
    "style",
    "websocket",
    "xhr",
]
"""What a request is to a browser."""

ProfileName: TypeAlias = Literal[
    "chrome",
    "chrome-131",
    "chrome-131-android",
    "chrome-131-linux",
    "chrome-131-macos",
    "chrome-131-windows",
    "chrome-147",
    "chrome-147-android",
    "chrome-147-linux",
    "chrome-147-macos",
    "chrome-147-windows",
    "chrome-149",
    "chrome-149-android",
    "chrome-149-linux",
    "chrome-149-macos",
    "chrome-149-windows",
    "chrome-150",
    "chrome-150-android",
    "chrome-150-linux",
    "chrome-150-macos",
    "chrome-150-windows",
    "chrome-153",
    "chrome-153-android",
    "chrome-153-linux",
    "chrome-153-macos",
    "chrome-153-windows",
    "chrome-156",
    "chrome-156-android",
    "chrome-156-linux",
    "chrome-156-macos",
    "chrome-156-windows",
    "chrome-android",
    "chrome-linux",
    "chrome-macos",
    "chrome-windows",
    "chromium",
    "chromium-150",
    "chromium-150-linux",
    "chromium-156",
    "chromium-156-linux",
    "edge",
    "edge-156",
    "edge-156-android",
    "edge-156-linux",
    "edge-156-macos",
    "edge-156-windows",
    "edge-android",
    "firefox",
    "firefox-140",
    "firefox-140-linux",
    "firefox-140-macos",
    "firefox-140-windows",
    "firefox-153",
    "firefox-153-linux",
    "firefox-153-macos",
    "firefox-153-windows",
    "firefox-159",
    "firefox-159-linux",
    "firefox-159-macos",
    "firefox-159-windows",
    "firefox-esr",
    "firefox-linux",
    "firefox-macos",
    "firefox-windows",
    "safari",
    "safari-18",
    "safari-18-ios",
    "safari-18-macos",
    "safari-26",
    "safari-26-ios",
    "safari-26-macos",
    "safari-ios",
    "safari-macos",
]
"""The browsers that a client can look like: `mimus profile list` says what each is."""


Transport: TypeAlias = Callable[[_transport.Request], _transport.Response]
"""Answers the requests of a client in the place of servers."""

AsyncTransport: TypeAlias = Callable[
    [_transport.Request], _transport.Response | Awaitable[_transport.Response]
]
"""The same for `AsyncClient`."""


class Hooks(TypedDict, total=False):
    """What is called before each exchange, and with each response."""

    request: Callable[[OutgoingRequest], object] | Sequence[Callable[[OutgoingRequest], object]]
    response: Callable[[Response], object] | Sequence[Callable[[Response], object]]


class AsyncHooks(TypedDict, total=False):
    """The same for `AsyncClient`, which awaits what they return where it can be awaited."""

    request: Callable[[OutgoingRequest], object] | Sequence[Callable[[OutgoingRequest], object]]
    response: Callable[[AsyncResponse], object] | Sequence[Callable[[AsyncResponse], object]]


class SessionOptions(TypedDict, total=False):
    """Keyword arguments of every call, and of WebSockets. `Client.request` says what each means."""

    params: Parameters | str | bytes | None
    headers: HeaderFields | None
    cookies: CookieFields | None
    auth: Auth | None
    timeout: float | Timeout | None
    follow_redirects: bool | int | None
    proxy: Proxies | None
    verify: Verify | None
    cert: Certificate | None
    profile: ProfileName | None
    http_version: HttpVersion | None
    unix_socket: Path | None
    resolve: Resolve | None
    local_address: str | IPv4Address | IPv6Address | None
    retries: int | Retry | None
    kind: Kind | None
    extensions: Mapping[str, object] | None


class CommonOptions(SessionOptions, total=False):
    """Keyword arguments of every call."""

    json: Any
    decode: bool | None


class StreamOptions(CommonOptions, total=False):
    """Keyword arguments of `Client.stream`."""

    content: Content | None
    data: Form | Content | None
    files: Files | None


class RequestOptions(StreamOptions, total=False):
    """Keyword arguments of a call of `Client`, and of `mimus.get` and its kin."""

    stream: bool | None


class WebSocketOptions(SessionOptions, total=False):
    """Keyword arguments of `websocket`. `Client.websocket` says what each means."""

    subprotocols: Iterable[str] | None
    origin: str | None
    compression: bool | Deflate | None
    max_message_size: int | None
    ping_interval: float | None
    ping_timeout: float | None
    idle_timeout: float | None
    close_timeout: float | None


class _EventOptions(TypedDict, total=False):
    method: str | None
    last_event_id: str | None
    reconnect: bool | Reconnect | None
    max_event_size: int | None


class EventOptions(CommonOptions, _EventOptions, total=False):
    """Keyword arguments of `Client.sse`, which says what each means."""

    content: Content | None
    data: Form | Content | None
    files: Files | None


class AsyncStreamOptions(CommonOptions, total=False):
    """Keyword arguments of `AsyncClient.stream`."""

    content: AsyncContent | None
    data: Form | AsyncContent | None
    files: AsyncFiles | None


class AsyncEventOptions(AsyncStreamOptions, _EventOptions, total=False):
    """Keyword arguments of `AsyncClient.sse`."""


class AsyncRequestOptions(AsyncStreamOptions, total=False):
    """Keyword arguments of a call of `AsyncClient`."""

    stream: bool | None


class CommonClientOptions(TypedDict, total=False):
    """Keyword arguments of both clients. `Client` says what each means."""

    base_url: URL | None
    params: Parameters | None
    headers: HasItems[str | bytes, _Text | None] | Pairs[str | bytes, _Text | None] | None
    cookies: bool | CookieFields | CookieJar | None
    auth: Auth | None
    timeout: float | Timeout | None
    follow_redirects: bool | int | None
    proxy: Proxies | None
    trust_env: bool | None
    verify: Verify | None
    cert: Certificate | None
    profile: ProfileName | None
    http_version: HttpVersion | None
    retries: int | Retry | None
    limits: Limits | None
    local_address: str | IPv4Address | IPv6Address | None
    unix_socket: Path | None
    resolve: Resolve | None
    decode: bool | None
    default_headers: bool | None


class ClientOptions(CommonClientOptions, total=False):
    """Keyword arguments of `Client`."""

    hooks: Hooks | None
    transport: Transport | None


class AsyncClientOptions(CommonClientOptions, total=False):
    """Keyword arguments of `AsyncClient`."""

    hooks: AsyncHooks | None
    transport: AsyncTransport | None
