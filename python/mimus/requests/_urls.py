"""URLs as they are sent: taken apart (RFC 3986), put right, and put together again."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple
from urllib.parse import quote, urlunsplit

from . import _idna
from .exceptions import InvalidURL, MissingSchema

UNRESERVED_SET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SUB_DELIMS = "!$&'()*+,;="
_USERINFO = _SUB_DELIMS + ":"
_PATH = _USERINFO + "@/"
_QUERY = _PATH + "?"
_RESERVED = _QUERY + "#[]~"

# RFC 3986 appendix B. A backslash ends the authority, as browsers have it, so that no two readers of a URL
# take different hosts from it.
_PARTS = re.compile(r"(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?://([^\\/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_AUTHORITY = re.compile(r"(?:(.*)@)?(\[[^\[\]@]*\]|(?:[^\[\]%:@]|%[0-9a-fA-F]{2})*)(?::([0-9]{0,5}))?", re.DOTALL)
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")
_ESCAPE_OR_ALIKE = re.compile(r"%([0-9a-zA-Z]{2})")
_MAX_PORT = 65535
# Longer ones are seldom asked for twice.
_CACHED_LENGTH = 2048


class Url(NamedTuple):
    """The parts of a URL; `None` for one that is not there."""

    scheme: str | None
    auth: str | None
    host: str | None
    port: int | None
    path: str
    query: str | None
    fragment: str | None


def parse_url(url: str) -> Url:
    """Takes `url` apart. Raises `InvalidURL` where host or port are none.

    Of http and https, host, path and query come in their normal form.
    """
    scheme, authority, path, query, fragment = _PARTS.fullmatch(url).groups()  # type: ignore[union-attr]
    auth = host = port = None
    if authority:
        parts = _AUTHORITY.fullmatch(authority)
        if parts is None:
            raise InvalidURL(f"{url!r}: no host and port are {authority!r}")
        auth, host, digits = parts.groups()
        port = int(digits) if digits else None
        if port is not None and port > _MAX_PORT:
            raise InvalidURL(f"{url!r}: there is no port {port}")
    scheme = scheme and scheme.lower()
    if scheme in (None, "http", "https"):
        host = host and _host(host, url)
        path = _without_dots(_encoded(path, _PATH)) if authority is not None else path
        query = query and _encoded(query, _QUERY)
        fragment = fragment and _encoded(fragment, _QUERY)
        auth = auth and _encoded(auth, _USERINFO)
    if host and path and not path.startswith("/"):
        path = f"/{path}"
    return Url(scheme, auth, host or None, port, path, query, fragment)


def _host(host: str, url: str) -> str:
    if not host.startswith("["):
        return host.lower()
    from ipaddress import IPv6Address  # seldom needed, and slow to import

    address, percent, zone = host[1:-1].partition("%")
    try:
        IPv6Address(address)
    except ValueError:
        raise InvalidURL(f"{url!r}: no address of IPv6 is {host}") from None
    return f"[{address.lower()}{percent}{zone}]"


def _encoded(part: str, safe: str) -> str:
    """`part` with nothing in it that must be escaped; as it is, if a percent sign in it means an escape."""
    escapes = _ESCAPE.findall(part)
    if len(escapes) == part.count("%"):
        safe += "%"
        part = _ESCAPE.sub(lambda escape: escape[0].upper(), part) if escapes else part
    return quote(part, safe + "~")


def _without_dots(path: str) -> str:
    """RFC 3986 section 5.2.4."""
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            if len(kept) > 1:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/".join(kept)


def unquote_unreserved(uri: str) -> str:
    """Without the escapes that need not be (RFC 3986 section 2.3). Raises `InvalidURL` for one that is none."""
    return _ESCAPE_OR_ALIKE.sub(_unescaped, uri)


def _unescaped(escape: re.Match[str]) -> str:
    try:
        char = chr(int(escape[1], 16))
    except ValueError:
        raise InvalidURL(f"{escape[0]!r} escapes nothing") from None
    return char if char in UNRESERVED_SET else escape[0]


def requote_uri(uri: str) -> str:
    """`uri` escaped where it must be, and only there. A percent sign that escapes nothing is escaped itself."""
    try:
        return quote(unquote_unreserved(uri), _RESERVED + "%")
    except InvalidURL:
        return quote(uri, _RESERVED)


def prepared_url(url: str, query: str) -> str:
    """`url` as it is sent, with `query` behind its own. What has another scheme than http's is left alone."""
    return _prepared_again(url, query) if len(url) + len(query) < _CACHED_LENGTH else _prepared(url, query)


def _prepared(url: str, query: str) -> str:
    url = url.lstrip()
    if ":" in url and not url[:4].lower().startswith("http"):
        return url
    parts = parse_url(url)
    if not parts.scheme:
        raise MissingSchema(f"{url!r} has no scheme; https://{url} has one")
    if not parts.host:
        raise InvalidURL(f"{url!r} has no host")
    netloc = _ascii_host(parts.host, url)
    if parts.auth:
        netloc = f"{parts.auth}@{netloc}"
    if parts.port is not None:
        netloc = f"{netloc}:{parts.port}"
    joined = f"{parts.query}&{query}" if parts.query and query else parts.query or query
    return requote_uri(urlunsplit((parts.scheme, netloc, parts.path or "/", joined, parts.fragment or "")))


_prepared_again = functools.lru_cache(maxsize=1024)(_prepared)


def _ascii_host(host: str, url: str) -> str:
    if host.isascii():
        if host.startswith(("*", ".")) or any(char <= " " for char in host):
            raise InvalidURL(f"{url!r}: no host is {host!r}")
        return host
    try:
        return _idna.to_ascii(host)
    except ValueError as error:
        raise InvalidURL(f"{url!r}: no host is {host!r}: {error}") from None
