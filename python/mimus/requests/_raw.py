"""`Response.raw`: the answer as a file, before its content coding is undone, or after."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

import mimus

from .structures import CaseInsensitiveDict

_VERSIONS = {"HTTP/1.0": 10, "HTTP/1.1": 11, "HTTP/2": 20, "HTTP/3": 30}
# Of what is read to the end, so that the connection can serve again.
_PIECE = 1 << 16


class HTTPHeaderDict(CaseInsensitiveDict):
    """Header fields as they came: a field that came more than once is one, joined by commas, and `getlist` parts it."""

    __slots__ = ("_repeated",)

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._store = {}
        self._repeated: dict[str, list[str]] = {}
        for name, value in pairs:
            self.add(name, value)

    def add(self, name: str, value: str) -> None:
        """Adds a field, beside those of the same name."""
        folded = name.lower()
        known = self._store.get(folded)
        if known is None:
            self._store[folded] = name, value
            return
        self._repeated.setdefault(folded, [known[1]]).append(value)
        # RFC 9110 section 5.3.
        self._store[folded] = known[0], f"{known[1]}, {value}"

    def __setitem__(self, key: str, value: Any) -> None:
        self._repeated.pop(key.lower(), None)
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._repeated.pop(key.lower(), None)

    def getlist(self, name: str, default: Any = ()) -> list[str]:
        """The values of a field, each for itself."""
        folded = name.lower()
        if folded in self._repeated:
            return list(self._repeated[folded])
        return [self._store[folded][1]] if folded in self._store else list(default)

    get_all = getheaders = getlist

    def copy(self) -> HTTPHeaderDict:
        new = HTTPHeaderDict()
        new._store = self._store.copy()
        new._repeated = {name: values.copy() for name, values in self._repeated.items()}
        return new


def fields(headers: mimus.Headers) -> HTTPHeaderDict:
    """Of what the native client has read. Bytes beyond ASCII are ISO 8859-1, as they are in requests."""
    pairs = headers.pairs()
    found = HTTPHeaderDict()
    store = found._store
    ascii_only = True
    for pair in pairs:
        store[pair[0].lower()] = pair
        ascii_only = ascii_only and pair[1].isascii()
    if not ascii_only:
        pairs = [(name.decode("latin1"), value.decode("latin1")) for name, value in headers.raw]
    # Seldom does a field come twice.
    return found if ascii_only and len(store) == len(pairs) else HTTPHeaderDict(pairs)


class HTTPResponse:
    """An answer that can be read like a file: `io` takes it for one of its own.

    `native` is the `mimus.Response`: its TLS, timings and addresses are there. Without `decode_content` reading gives
    the bytes as they were sent.
    """

    def __init__(self, native: mimus.Response, read: bool = False) -> None:
        self.native = native
        self.status: int = native.status
        self.reason: str = native.reason
        self._headers: HTTPHeaderDict | None = None
        self.decode_content = False
        self._ended = read
        self._closed = False
        self._pieces: Iterator[bytes | memoryview] | None = None
        self._rest = b""
        self._position = 0

    @property
    def headers(self) -> HTTPHeaderDict:
        """The header fields."""
        if self._headers is None:
            self._headers = fields(self.native.headers)
        return self._headers

    @property
    def until_head(self) -> float:
        """Seconds until the head began to come."""
        return self.native.timings.first_byte or 0.0

    @property
    def version(self) -> int:
        """Of HTTP: 10, 11 or 20."""
        return _VERSIONS.get(self.native.http_version, 11)

    @property
    def version_string(self) -> str:
        """Of HTTP, as it is written."""
        return str(self.native.http_version)

    @property
    def url(self) -> str:
        """What was asked for."""
        return str(self.native.url)

    def geturl(self) -> str:
        return self.url

    def info(self) -> HTTPHeaderDict:
        return self.headers

    def getheaders(self) -> HTTPHeaderDict:
        return self.headers

    def getheader(self, name: str, default: str | None = None) -> Any:
        return self.headers.get(name, default)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return False

    def isatty(self) -> bool:
        return False

    def flush(self) -> None:
        """Nothing is written."""

    def fileno(self) -> int:
        raise io.UnsupportedOperation("an answer has no descriptor of its own")

    def __enter__(self) -> HTTPResponse:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def isclosed(self) -> bool:
        """Whether there is nothing to read any more."""
        return self._ended or self.closed

    def tell(self) -> int:
        """The bytes that have been read."""
        return self._position

    def read(self, amt: int | None = None, decode_content: bool | None = None, cache_content: bool = False) -> bytes:
        """The next `amt` bytes, less at the end only; all that is left with `None`, or a negative number.

        `cache_content` is known to urllib3, and without effect.
        """
        if amt is not None and amt < 0:
            amt = None
        parts, missing = [], amt
        while missing is None or missing > 0:
            piece = self._next(decode_content)
            if not piece:
                break
            if missing is not None:
                piece, self._rest = piece[:missing], piece[missing:]
                missing -= len(piece)
            parts.append(piece)
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        self._position += len(data)
        return data

    def read1(self, amt: int | None = None, decode_content: bool | None = None) -> bytes:
        """What has come, up to `amt` bytes; it waits only if that is nothing."""
        piece = b"" if amt == 0 else self._next(decode_content)
        if amt is not None and 0 <= amt < len(piece):
            piece, self._rest = piece[:amt], piece[amt:]
        self._position += len(piece)
        return piece

    def readline(self, size: int | None = -1) -> bytes:
        """The next line with its end, or `size` bytes of it."""
        parts: list[bytes] = []
        left = -1 if size is None else size
        while left and (piece := self._next(None)):
            end = piece.find(b"\n") + 1 or len(piece)
            end = end if left < 0 else min(end, left)
            parts.append(piece[:end])
            self._rest = piece[end:]
            left -= end if left > 0 else 0
            if piece[end - 1 : end] == b"\n":
                break
        line = b"".join(parts)
        self._position += len(line)
        return line

    def readlines(self, hint: int | None = -1) -> list[bytes]:
        """All lines, or those that begin within `hint` bytes."""
        lines, size = [], 0
        while (not hint or hint < 0 or size < hint) and (line := self.readline()):
            lines.append(line)
            size += len(line)
        return lines

    def readinto(self, buffer: Any) -> int:
        data = self.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def stream(self, amt: int | None = _PIECE, decode_content: bool | None = None) -> Iterator[bytes]:
        """The rest in pieces of at most `amt` bytes: of just so many where the length is known, else as they come."""
        whole = amt is not None and "content-length" in self.headers
        while piece := self.read(amt, decode_content) if whole else self.read1(amt, decode_content):
            yield piece

    def __iter__(self) -> Iterator[bytes]:
        pending = b""
        for piece in self.stream(decode_content=True):
            *lines, pending = (pending + piece).split(b"\n")
            for line in lines:
                yield line + b"\n"
        if pending:
            yield pending

    def _next(self, decode_content: bool | None) -> bytes:
        """What lies ready, or else the next piece of the body; nothing at its end."""
        if self._rest:
            piece, self._rest = self._rest, b""
            return piece
        if self._ended or self._closed:
            return b""
        if self._pieces is None:
            decode = self.decode_content if decode_content is None else decode_content
            self._pieces = self.native.iter_bytes() if decode else self.native.iter_raw()
        for own in self._pieces:
            if own:
                # What is not decoded is the native client's memory.
                return own if type(own) is bytes else bytes(own)
        self._ended = True
        return b""

    def drain_conn(self) -> None:
        """Reads what is left, and forgets it."""
        while self.read1():
            pass

    def release_conn(self) -> None:
        """Gives the connection back; one whose answer has not been read is closed, as nobody else can use it."""
        if not self._ended:
            self._ended = True
            self._rest = b""
            self.native.close()

    def close(self) -> None:
        self._closed = True
        self.release_conn()


io.IOBase.register(HTTPResponse)
