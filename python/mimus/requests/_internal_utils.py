"""Strings and header fields."""

from __future__ import annotations

import re

# RFC 9112 section 5: a name is not empty, and neither it nor a value may hold the end of a line. A value that
# begins with a blank would be sent as another one than was asked for.
_NAME_BYTES, _VALUE_BYTES = re.compile(rb"[^:\s][^:\r\n]*"), re.compile(rb"(?:\S[^\r\n]*)?")
_NAME_STR, _VALUE_STR = re.compile(r"[^:\s][^:\r\n]*"), re.compile(r"(?:\S[^\r\n]*)?")


def to_native_string(string: str | bytes, encoding: str = "ascii") -> str:
    """`string` as `str`."""
    return string if isinstance(string, str) else string.decode(encoding)


def unicode_is_ascii(u_string: str) -> bool:
    """Whether all of it is ASCII."""
    return u_string.isascii()


def valid_header(name: str | bytes, value: str | bytes) -> bool:
    """Whether a field's name and value may be sent. Raises `TypeError` for what is neither `str` nor `bytes`."""
    return bool(
        (_NAME_STR if isinstance(name, str) else _NAME_BYTES).fullmatch(name)  # type: ignore[arg-type]
        and (_VALUE_STR if isinstance(value, str) else _VALUE_BYTES).fullmatch(value)  # type: ignore[arg-type]
    )
