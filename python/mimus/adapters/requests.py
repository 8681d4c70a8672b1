"""An adapter by which sessions of requests run on Mimus. (`mimus.requests` is requests' API without requests.)

    session = requests.Session()
    session.mount("https://", mimus.adapters.requests.HTTPAdapter(profile="chrome"))
"""

import http.client
import io
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, cast

try:
    import requests
except ModuleNotFoundError as _missing:
    if _missing.name != "requests":
        raise
    message = "mimus.adapters.requests needs requests: pip install 'mimus[requests]'"
    raise ImportError(message) from None

import urllib3
from requests import adapters, exceptions
from requests.cookies import extract_cookies_to_jar
from requests.structures import CaseInsensitiveDict
from requests.utils import get_encoding_from_headers, select_proxy

import mimus
from mimus import _errors as errors

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from mimus.types import Path, ProfileName, Resolve

__all__ = ["HTTPAdapter"]

# The first class that an error is of decides.
_EXCEPTIONS = (
    (errors.ConnectTimeout, exceptions.ConnectTimeout),
    (errors.PoolTimeout, exceptions.ConnectionError),
    (errors.RequestTimeout, exceptions.ReadTimeout),
    (errors.TlsError, exceptions.SSLError),
    (errors.ProxyError, exceptions.ProxyError),
    (errors.InvalidURL, exceptions.InvalidURL),
    (errors.RequestError, exceptions.InvalidHeader),
    (errors.Error, exceptions.ConnectionError),
)


class HTTPAdapter(adapters.BaseAdapter):
    """What a session sends by, once it is mounted.

    Redirects, cookies, credentials, decoding and the environment's proxies are requests' own business, as ever.

    Args:
        http1: Whether HTTP/1.1 may be spoken.
        http2: Whether HTTP/2 may be.
        limits: Limits of the pool.
        max_retries: How often it is tried again to make a connection; or a `mimus.Retry`.
        local_address: The address to connect from, or the name of an interface.
        unix_socket: The path of a Unix socket to connect to in place of the URL's host.
        profile: The browser to look like on the wire.
        resolve: A mapping of "host" or "host:port" to addresses.

    Raises:
        mimus.RequestError: A setting cannot be used.
    """

    def __init__(
        self,
        max_retries: int | mimus.Retry = 0,
        *,
        http1: bool = True,
        http2: bool = True,
        limits: mimus.Limits | None = None,
        local_address: str | None = None,
        unix_socket: "Path | None" = None,
        profile: "ProfileName | None" = None,
        resolve: "Resolve | None" = None,
    ) -> None:
        super().__init__()
        if not (http1 or http2):
            raise ValueError("with neither http1 nor http2 nothing can be asked")
        settings: dict[str, Any] = {
            "http_version": None if http1 and http2 else "1.1" if http1 else "2",
            "limits": limits,
            "local_address": local_address,
            "profile": profile,
            "resolve": resolve,
            "retries": _retries(max_retries),
            "unix_socket": unix_socket,
        }
        self._client = mimus.Client(
            cookies=False,
            decode=False,
            default_headers=False,
            follow_redirects=False,
            timeout=None,
            trust_env=False,
            **{name: value for name, value in settings.items() if value is not None},
        )

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        """Sends a prepared request, and returns the response at its head.

        Args:
            request: The `requests.PreparedRequest`.
            stream: Has no effect here: who reads the body is the session.
            timeout: Seconds for connecting and for each read, (connect, read), or None.
            verify: True, False, or a path to certificates in PEM.
            cert: A path to certificate and key in PEM, or (certificate, key).
            proxies: URLs by scheme, or by scheme and host.

        Raises:
            requests.RequestException: There was no answer.
        """
        options: dict[str, Any] = {"headers": _fields(request), "stream": True, "timeout": _timeout(timeout)}
        if request.body is not None:
            options["content"] = _content(request)
        if verify is not True:
            options["verify"] = verify
        if cert is not None:
            options["cert"] = tuple(cert) if isinstance(cert, list) else cert
        method, url = request.method or "GET", request.url or ""
        proxy = select_proxy(url, proxies)
        if proxy:
            options["proxy"] = proxy if "://" in proxy else f"http://{proxy}"
        try:
            answer = self._client.request(method, _without_userinfo(url), **options)
        except errors.Error as error:
            raise _translated(error, request) from error
        return self._response(request, answer)

    def _response(self, request: requests.PreparedRequest, answer: mimus.Response) -> requests.Response:
        raw = Raw(answer, request)
        # It has more attributes than are declared of it.
        response: Any = requests.Response()
        response.status_code = raw.status
        response.headers = CaseInsensitiveDict(raw.headers)
        response.encoding = get_encoding_from_headers(response.headers)
        response.raw = raw
        response.reason = raw.reason
        response.url = request.url
        extract_cookies_to_jar(response.cookies, request, raw)  # type: ignore[no-untyped-call]
        response.request = request
        response.connection = self
        return cast(requests.Response, response)

    def close(self) -> None:
        """Closes the connections that nobody uses. Requests after this fail."""
        self._client.close()


class Raw(urllib3.HTTPResponse):
    """The `raw` of a response: its body as it came, which urllib3 decodes."""

    def __init__(self, answer: mimus.Response, request: requests.PreparedRequest) -> None:
        fields = urllib3.HTTPHeaderDict()
        message = http.client.HTTPMessage()
        for name, value in answer.headers.pairs():
            fields.add(name, value)
            message.add_header(name, value)
        body = Body(answer, message)
        super().__init__(
            body=body,
            headers=fields,
            status=answer.status,
            version=20 if answer.http_version == "HTTP/2" else 10 if answer.http_version == "HTTP/1.0" else 11,
            version_string=answer.http_version,
            reason=answer.reason,
            preload_content=False,
            decode_content=False,
            # Where cookies are looked for.
            original_response=cast(Any, body),
            # Mimus has held it against the body already.
            enforce_content_length=False,
            request_method=request.method,
            request_url=request.url,
        )
        self.mimus = answer

    def stream(self, amt: int | None = 65536, decode_content: bool | None = None) -> Generator[bytes, None, None]:
        """Gives the body in pieces of at most `amt` bytes, as they come."""
        while True:
            piece = self.read1(amt, decode_content=decode_content)
            if piece:
                yield piece
            elif cast(Body, self._fp).isclosed():
                return


class Body(io.RawIOBase):
    """The body of an answer as a file, with what else urllib3 asks of the response of the standard library."""

    def __init__(self, answer: mimus.Response, message: http.client.HTTPMessage) -> None:
        super().__init__()
        self.msg = message
        self._answer = answer
        self._pieces = answer.iter_bytes()
        self._rest = b""

    def readable(self) -> bool:
        """It is."""
        return True

    def read1(self, size: int | None = -1) -> bytes:
        """At most `size` bytes of what is here, or of what comes next."""
        if not self._rest:
            self._rest = self._next()
        if size is None or size < 0:
            size = len(self._rest)
        piece, self._rest = self._rest[:size], self._rest[size:]
        if not piece and size:
            self.close()
        return piece

    def _next(self) -> bytes:
        try:
            return next(self._pieces, b"")
        except OSError:
            # urllib3 knows what to make of those.
            raise
        except errors.Error as error:
            raise urllib3.exceptions.ProtocolError(str(error), error) from error

    def read(self, size: int | None = -1) -> bytes:
        """Exactly `size` bytes, or all of them, but at the end."""
        pieces = []
        wanted = None if size is None or size < 0 else size
        while wanted is None or wanted > 0:
            piece = b"" if self.closed else self.read1(-1 if wanted is None else wanted)
            if not piece:
                break
            pieces.append(piece)
            if wanted is not None:
                wanted -= len(piece)
        return b"".join(pieces)

    def readinto(self, buffer: "Buffer") -> int:
        """Fills a buffer with what comes next."""
        room = memoryview(buffer).cast("B")
        piece = self.read1(len(room))
        room[: len(piece)] = piece
        return len(piece)

    def isclosed(self) -> bool:
        """Whether nothing more comes."""
        return self.closed

    def close(self) -> None:
        """Gives up what was not read."""
        if not self.closed:
            self._answer.close()
        super().close()


def _fields(request: requests.PreparedRequest) -> list[tuple[str, str]]:
    # What a caller sets to None is not to be sent.
    return [(name, value) for name, value in request.headers.items() if value is not None]


def _content(request: requests.PreparedRequest) -> Any:
    body = request.body
    if isinstance(body, (str, bytes)) and "Transfer-Encoding" in request.headers:
        return iter((body,))
    return body


def _without_userinfo(url: str) -> str:
    """requests has made a field of it."""
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def _timeout(timeout: Any) -> mimus.Timeout | None:
    if timeout is None:
        return None
    if isinstance(timeout, tuple):
        try:
            connect, read = timeout
        except ValueError:
            raise ValueError(f"a timeout is a number, or (connect, read), not {timeout!r}") from None
    elif isinstance(timeout, urllib3.Timeout):
        connect = urllib3.Timeout.resolve_default_timeout(timeout.connect_timeout)
        read = timeout.read_timeout
    else:
        connect = read = timeout
    return mimus.Timeout(connect=connect, read=read, write=read)


def _retries(retries: int | mimus.Retry) -> mimus.Retry | None:
    if isinstance(retries, mimus.Retry):
        return retries
    return mimus.Retry(retries, statuses=[], methods=[], on_connect=True) if retries else None


def _translated(error: errors.Error, request: requests.PreparedRequest) -> exceptions.RequestException:
    for kind, exception in _EXCEPTIONS:
        if isinstance(error, kind):
            return exception(error, request=request)
    return exceptions.RequestException(error, request=request)
