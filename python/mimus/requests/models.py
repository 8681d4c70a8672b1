"""Requests, as they are asked for and as they are sent, and answers."""

from __future__ import annotations

import datetime
import json as complexjson
from collections.abc import Callable, Iterator, Mapping
from http import cookiejar as cookielib
from io import UnsupportedOperation
from typing import Any, ClassVar
from urllib.parse import urlencode, urlsplit

from . import _multipart
from ._errors import body_error
from ._internal_utils import to_native_string
from ._urls import prepared_url
from .auth import CONTENT_TYPE_FORM_URLENCODED, HTTPBasicAuth
from .compat import char_detection
from .cookies import _copy_cookie_jar, cookiejar_from_dict, get_cookie_header
from .exceptions import HTTPError, InvalidJSONError, JSONDecodeError, StreamConsumedError
from .hooks import default_hooks
from .status_codes import codes
from .structures import CaseInsensitiveDict
from .utils import (
    check_header_validity,
    each_value,
    get_auth_from_url,
    guess_json_utf,
    iter_slices,
    parse_header_links,
    stream_decode_response_unicode,
    super_len,
    to_key_val_list,
)

REDIRECT_STATI = (codes.moved, codes.found, codes.other, codes.temporary_redirect, codes.permanent_redirect)
DEFAULT_REDIRECT_LIMIT = 30
CONTENT_CHUNK_SIZE = 10 * 1024
ITER_CHUNK_SIZE = 512
# A request of these has no content unless it is given some, and need not say so (RFC 9110 section 8.6).
_NO_CONTENT = ("GET", "HEAD")
# Bodies as they are; of anything else a form is made, or it is read as it is sent.
_WRITTEN = (str, bytes, bytearray, memoryview)


class RequestEncodingMixin:
    """How URLs and bodies are written."""

    url: Any

    @property
    def path_url(self) -> str:
        """The path and the query of the URL."""
        parts = urlsplit(self.url)
        path = parts.path or "/"
        return f"{path}?{parts.query}" if parts.query else path

    @staticmethod
    def _encode_params(data: Any) -> Any:
        """Names and values as a form; a string, or a file, as it is."""
        if isinstance(data, _WRITTEN) or hasattr(data, "read") or not hasattr(data, "__iter__"):
            return data
        pairs = []
        for name, values in to_key_val_list(data) or ():
            pairs += [(name, value) for value in each_value(values) if value is not None]
        return urlencode(pairs)

    @staticmethod
    def _encode_files(files: Any, data: Any) -> tuple[bytes, str]:
        """A multipart body of values and files, and its content type."""
        if not files:
            raise ValueError("there are no files")
        return _multipart.encode(_multipart.fields_of(data, files))


class RequestHooksMixin:
    """Hooks: callables by event."""

    hooks: dict[str, list[Any]]

    def register_hook(self, event: str, hook: Any) -> None:
        """Adds a hook, or several."""
        if event not in self.hooks:
            raise ValueError(f"there is no event {event!r}")
        if callable(hook):
            self.hooks[event].append(hook)
        elif hasattr(hook, "__iter__"):
            self.hooks[event].extend(each for each in hook if callable(each))

    def deregister_hook(self, event: str, hook: Callable[..., Any]) -> bool:
        """Removes a hook; whether it was there."""
        try:
            self.hooks[event].remove(hook)
        except ValueError:
            return False
        return True


class Request(RequestHooksMixin):
    """A request as it is asked for. `prepare` makes what is sent of it; a session adds what is its own."""

    def __init__(
        self,
        method: str | None = None,
        url: Any = None,
        headers: Any = None,
        files: Any = None,
        data: Any = None,
        params: Any = None,
        auth: Any = None,
        cookies: Any = None,
        hooks: Any = None,
        json: Any = None,
    ) -> None:
        self.method = method
        self.url = url
        self.headers: Any = {} if headers is None else headers
        self.files: Any = [] if files is None else files
        self.data: Any = [] if data is None else data
        self.json = json
        self.params: Any = {} if params is None else params
        self.auth = auth
        self.cookies = cookies
        self.hooks: dict[str, list[Any]] = default_hooks()
        for event, hook in (hooks or {}).items():
            self.register_hook(event=event, hook=hook)

    def __repr__(self) -> str:
        return f"<Request [{self.method}]>"

    def prepare(self) -> PreparedRequest:
        """What is sent of it."""
        prepared = PreparedRequest()
        prepared.prepare(
            method=self.method,
            url=self.url,
            headers=self.headers,
            files=self.files,
            data=self.data,
            json=self.json,
            params=self.params,
            auth=self.auth,
            cookies=self.cookies,
            hooks=self.hooks,
        )
        return prepared


class PreparedRequest(RequestEncodingMixin, RequestHooksMixin):
    """A request as it is sent. What is changed in it is sent so."""

    def __init__(self) -> None:
        self.method: str | None = None
        self.url: str | None = None
        self.headers: Any = None
        self._cookies: Any = None
        self.body: Any = None
        self.hooks: dict[str, list[Any]] = default_hooks()
        # Where a body that is a file began: an integer, or an object() if it could not tell.
        self._body_position: Any = None

    def prepare(
        self,
        method: str | None = None,
        url: Any = None,
        headers: Any = None,
        files: Any = None,
        data: Any = None,
        params: Any = None,
        auth: Any = None,
        cookies: Any = None,
        hooks: Any = None,
        json: Any = None,
    ) -> None:
        """Sets all of it. The credentials come behind all that they may sign, the hooks behind them."""
        self.prepare_method(method)
        self.prepare_url(url, params)
        self.prepare_headers(headers)
        self.prepare_cookies(cookies)
        self.prepare_body(data, files, json)
        self.prepare_auth(auth, url)
        self.prepare_hooks(hooks)

    def __repr__(self) -> str:
        return f"<PreparedRequest [{self.method}]>"

    def copy(self) -> PreparedRequest:
        """A request of its own; the body is the same object."""
        new = PreparedRequest()
        new.method = self.method
        new.url = self.url
        new.headers = self.headers.copy() if self.headers is not None else None
        new._cookies = _copy_cookie_jar(self._cookies)
        new.body = self.body
        new.hooks = self.hooks
        new._body_position = self._body_position
        return new

    def prepare_method(self, method: Any) -> None:
        """Sets the method, in capitals."""
        self.method = None if method is None else to_native_string(method.upper())

    def prepare_url(self, url: Any, params: Any) -> None:
        """Sets the URL, with `params` in its query."""
        url = url.decode("utf8") if isinstance(url, bytes) else str(url)
        query = self._encode_params(to_native_string(params) if isinstance(params, bytes) else params) if params else ""
        self.url = prepared_url(url, query)

    def prepare_headers(self, headers: Any) -> None:
        """Sets the header fields. Raises `InvalidHeader`."""
        self.headers = CaseInsensitiveDict()
        if not headers:
            return
        store = self.headers._store
        for item in headers.items():
            check_header_validity(item)
            name, value = item
            name = name if type(name) is str else to_native_string(name)
            store[name.lower()] = name, value

    def prepare_body(self, data: Any, files: Any, json: Any = None) -> None:
        """Sets the body: of `files` and `data`, of `data`, or else of `json`, and the fields that tell of it."""
        body, kind = None, None
        if not data and json is not None:
            body, kind = _json(json), "application/json"
        if _is_stream(data):
            self._prepare_stream(data, files)
            return
        if files:
            body, kind = self._encode_files(files, data)
        elif data:
            body = self._encode_params(data)
            kind = None if isinstance(data, _WRITTEN) else CONTENT_TYPE_FORM_URLENCODED
        self.prepare_content_length(body)
        if kind and "content-type" not in self.headers:
            self.headers["Content-Type"] = kind
        self.body = body

    def _prepare_stream(self, data: Any, files: Any) -> None:
        if files:
            raise NotImplementedError("a stream and files cannot be sent in one body")
        try:
            length: int | None = super_len(data)
        except (TypeError, AttributeError, UnsupportedOperation):
            length = None
        if hasattr(data, "tell"):
            try:
                self._body_position = data.tell()
            except OSError:
                self._body_position = object()
        if length:
            self.headers["Content-Length"] = str(length)
        else:
            self.headers["Transfer-Encoding"] = "chunked"
        self.body = data

    def prepare_content_length(self, body: Any) -> None:
        """Sets `Content-Length`, unless there is no content and the method needs none."""
        if body is not None:
            length = super_len(body)
            if length:
                self.headers["Content-Length"] = str(length)
        elif self.method not in _NO_CONTENT and self.headers.get("Content-Length") is None:
            self.headers["Content-Length"] = "0"

    def prepare_auth(self, auth: Any, url: Any = "") -> None:
        """Lets `auth`, or the name and password in the URL, put credentials in."""
        if auth is None:
            of_url = get_auth_from_url(self.url) if "@" in (self.url or "") else ("", "")  # type: ignore[arg-type]
            auth = of_url if any(of_url) else None
        if not auth:
            return
        if isinstance(auth, tuple) and len(auth) == 2:
            auth = HTTPBasicAuth(*auth)
        call: Any = auth
        changed = call(self)
        self.__dict__.update(changed.__dict__)
        # It may have changed the body.
        self.prepare_content_length(self.body)

    def prepare_cookies(self, cookies: Any) -> None:
        """Sets `Cookie`, once: a second call changes nothing while the field is there."""
        self._cookies = cookies if isinstance(cookies, cookielib.CookieJar) else cookiejar_from_dict(cookies)
        header = get_cookie_header(self._cookies, self)
        if header is not None:
            self.headers["Cookie"] = header

    def prepare_hooks(self, hooks: Any) -> None:
        """Adds hooks."""
        for event, hook in (hooks or {}).items():
            self.register_hook(event, hook)


def _is_stream(data: Any) -> bool:
    """Whether a body is read as it is sent. Files behind a proxy object show their `__iter__` to getattr() only."""
    if not data and not hasattr(data, "read"):
        return False
    if isinstance(data, (*_WRITTEN, list, tuple, Mapping)):
        return False
    return hasattr(data, "__iter__") or hasattr(data, "read")


def _json(value: Any) -> bytes:
    try:
        return complexjson.dumps(value, allow_nan=False).encode()
    except ValueError as error:
        raise InvalidJSONError(error) from error


class Response:
    """An answer. Its body has been read, unless it was asked for with `stream=True`."""

    __attrs__: ClassVar[list[str]] = [
        "_content",
        "status_code",
        "headers",
        "url",
        "history",
        "encoding",
        "reason",
        "cookies",
        "elapsed",
        "request",
    ]

    connection: Any

    def __init__(self) -> None:
        # `False` until it is read.
        self._content: Any = False
        self._content_consumed = False
        self._next: PreparedRequest | None = None
        self._cookies: Any = None
        self.status_code: Any = None
        self.headers: Any = CaseInsensitiveDict()
        self.raw: Any = None
        self.url: Any = None
        self.encoding: str | None = None
        self.history: list[Response] = []
        self.reason: Any = None
        self.elapsed: datetime.timedelta = datetime.timedelta(0)
        self.request: Any = None

    @property
    def cookies(self) -> Any:
        """The cookies that this answer has set."""
        if self._cookies is None:
            self._cookies = cookiejar_from_dict({})
        return self._cookies

    @cookies.setter
    def cookies(self, jar: Any) -> None:
        self._cookies = jar

    def __enter__(self) -> Response:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        # What is kept must be whole.
        _ = self.content
        return {name: getattr(self, name, None) for name in self.__attrs__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        for name, value in state.items():
            setattr(self, name, value)
        self._content_consumed = True

    def __repr__(self) -> str:
        return f"<Response [{self.status_code}]>"

    def __bool__(self) -> bool:
        return self.ok

    def __iter__(self) -> Iterator[bytes]:
        return self.iter_content(128)

    @property
    def ok(self) -> bool:
        """Whether the status is below 400: success, or a redirect."""
        try:
            self.raise_for_status()
        except HTTPError:
            return False
        return True

    @property
    def is_redirect(self) -> bool:
        """Whether it leads elsewhere."""
        return self.status_code in REDIRECT_STATI and "location" in self.headers

    @property
    def is_permanent_redirect(self) -> bool:
        """Whether it leads elsewhere for good."""
        return self.status_code in (codes.moved_permanently, codes.permanent_redirect) and "location" in self.headers

    @property
    def next(self) -> PreparedRequest | None:
        """The request that a redirect leads to, if it was not followed."""
        return self._next

    @property
    def apparent_encoding(self) -> str | None:
        """The encoding that the body seems to have: guessed if chardet or charset_normalizer is installed."""
        detector = char_detection()
        return detector.detect(self.content or b"")["encoding"] if detector is not None else "utf-8"

    def iter_content(self, chunk_size: int | None = 1, decode_unicode: bool = False) -> Iterator[Any]:
        """The body in chunks of at most `chunk_size` bytes, or as they come if it is `None`, once they are decoded.

        Raises `StreamConsumedError` if it has been read and not kept, and for a body that ends early or is damaged
        `ChunkedEncodingError`, `ContentDecodingError` or `ConnectionError`.
        """
        if self._content_consumed and isinstance(self._content, bool):
            raise StreamConsumedError
        if chunk_size is not None and not isinstance(chunk_size, int):
            raise TypeError(f"chunk_size must be an int or None, not {type(chunk_size).__name__}")
        chunks = iter_slices(self._content, chunk_size) if self._content_consumed else self._stream(chunk_size)
        return stream_decode_response_unicode(chunks, self) if decode_unicode else chunks

    def _stream(self, chunk_size: int | None) -> Iterator[bytes]:
        raw = self.raw
        try:
            if hasattr(raw, "stream"):
                yield from raw.stream(chunk_size, decode_content=True)
            else:
                # Any file will do.
                while chunk := raw.read(chunk_size):
                    yield chunk
        except Exception as error:
            raise body_error(error, self.request) from error
        self._content_consumed = True

    def iter_lines(
        self, chunk_size: int = ITER_CHUNK_SIZE, decode_unicode: bool = False, delimiter: Any = None
    ) -> Iterator[Any]:
        """The lines of the body, without their ends. What one iterator has read ahead, no other gets."""
        pending = None
        for chunk in self.iter_content(chunk_size=chunk_size, decode_unicode=decode_unicode):
            text = chunk if pending is None else pending + chunk
            lines = text.split(delimiter) if delimiter else text.splitlines()
            # The last one may go on in the next chunk.
            goes_on = lines and (delimiter or (lines[-1] and lines[-1][-1] == text[-1]))
            pending = lines.pop() if goes_on else None
            yield from lines
        if pending is not None:
            yield pending

    @property
    def content(self) -> Any:
        """The body; `None` where there is no answer."""
        if self._content is False:
            if self._content_consumed:
                raise RuntimeError("the body has been read already, and was not kept")
            if self.status_code == 0 or self.raw is None:
                self._content = None
            else:
                self._content = b"".join(self.iter_content(CONTENT_CHUNK_SIZE)) or b""
        self._content_consumed = True
        return self._content

    @property
    def text(self) -> str:
        """The body as text: in `encoding`, or in `apparent_encoding` if that is `None`."""
        content = self.content
        if not content:
            return ""
        try:
            return str(content, self.encoding or self.apparent_encoding or "utf-8", errors="replace")
        except (LookupError, TypeError, ValueError):
            # The head names an encoding that does not exist, or one that is not for text.
            return str(content, errors="replace")

    def json(self, **kwargs: Any) -> Any:
        """The body as JSON; `kwargs` are those of `json.loads`. Raises `JSONDecodeError`."""
        try:
            if not self.encoding and self.content and len(self.content) > 3:
                encoding = guess_json_utf(self.content)
                if encoding is not None:
                    try:
                        return complexjson.loads(self.content.decode(encoding), **kwargs)
                    except UnicodeDecodeError:
                        # It may be text of another encoding, against the RFC.
                        pass
            return complexjson.loads(self.text, **kwargs)
        except complexjson.JSONDecodeError as error:
            raise JSONDecodeError(error.msg, error.doc, error.pos) from error

    @property
    def links(self) -> dict[str, dict[str, str]]:
        """The links of `Link`, by their relation, or else by their URL."""
        header = self.headers.get("link")
        links = parse_header_links(header) if header else []
        return {link.get("rel") or link["url"]: link for link in links}

    def raise_for_status(self) -> None:
        """Raises `HTTPError` for a status of 400 and above."""
        status = self.status_code
        if not 400 <= status < 600:
            return
        reason = self.reason
        if isinstance(reason, bytes):
            try:
                reason = reason.decode("utf-8")
            except UnicodeDecodeError:
                reason = reason.decode("iso-8859-1")
        whose = "Client" if status < 500 else "Server"
        raise HTTPError(f"{status} {whose} Error: {reason} for url: {self.url}", response=self)

    def close(self) -> None:
        """Gives the connection back, or closes it if the body has not been read."""
        if not self._content_consumed:
            self.raw.close()
        release = getattr(self.raw, "release_conn", None)
        if release is not None:
            release()
