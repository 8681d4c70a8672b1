"""Forms with files (RFC 7578)."""

from __future__ import annotations

import os
from typing import Any

from ._internal_utils import to_native_string
from .utils import check_header_validity, each_value, guess_filename, to_key_val_list

# What the WHATWG's HTML standard has browsers do to names, section 4.10.21.8.
_ESCAPED = str.maketrans({"\n": "%0A", "\r": "%0D", '"': "%22"})


class Field:
    """One part: its name and content, and for a file its name and headers."""

    __slots__ = ("data", "filename", "headers", "name")

    def __init__(self, name: Any, data: Any, filename: Any = None, headers: dict[str, Any] | None = None) -> None:
        self.name = name
        self.data = data
        self.filename = filename
        self.headers = headers or {}

    def render(self) -> bytes:
        """Its head and content."""
        disposition = f'form-data; name="{_quoted(self.name)}"'
        if self.filename is not None:
            disposition += f'; filename="{_quoted(self.filename)}"'
        lines = [f"Content-Disposition: {disposition}"]
        for name, value in self.headers.items():
            if value:
                check_header_validity((name, value))
                lines.append(f"{to_native_string(name)}: {to_native_string(value, 'latin1')}")
        return "\r\n".join([*lines, "", ""]).encode() + _bytes(self.data)


def _quoted(name: Any) -> str:
    text = name.decode("utf-8") if isinstance(name, bytes) else str(name)
    return text.translate(_ESCAPED)


def _bytes(data: Any) -> bytes:
    return bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else str(data).encode()


def fields_of(data: Any, files: Any) -> list[Field]:
    """What `data` and `files` of a request say: values first, then files."""
    fields = []
    for name, values in to_key_val_list(data or {}) or ():
        fields += [Field(name, value) for value in each_value(values) if value is not None]
    fields += [field for name, value in to_key_val_list(files or {}) or () if (field := _file(name, value))]
    return fields


def _file(name: Any, value: Any) -> Field | None:
    """A file of its content, or of `(filename, content[, content type[, headers]])`."""
    kind = headers = None
    if isinstance(value, (tuple, list)):
        filename, content, *more = value
        kind, headers = [*more, None, None][:2]
    else:
        filename, content = guess_filename(value) or name, value
    if content is None:
        return None
    headers = dict(headers or {})
    if kind:
        headers["Content-Type"] = kind
    return Field(name, content.read() if hasattr(content, "read") else content, filename, headers)


def encode(fields: list[Field]) -> tuple[bytes, str]:
    """The body, and what `Content-Type` says of it."""
    boundary = os.urandom(16).hex()
    parts = [b"--%b\r\n%b\r\n" % (boundary.encode(), field.render()) for field in fields]
    return b"".join([*parts, b"--%b--\r\n" % boundary.encode()]), f"multipart/form-data; boundary={boundary}"
