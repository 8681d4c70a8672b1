"""What the other modules need, and callers of requests have come to use."""

from __future__ import annotations

import codecs
import contextlib
import functools
import io
import os
import re
import tempfile
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from netrc import NetrcParseError, netrc
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import (  # type: ignore[attr-defined]
    getproxies,
    getproxies_environment,
    parse_http_list,
    proxy_bypass,
    proxy_bypass_environment,  # pyright: ignore[reportAttributeAccessIssue]
)

from mimus import __version__

from . import certs

# Much of it is here for others to import.
from ._internal_utils import to_native_string, unicode_is_ascii, valid_header  # noqa: F401
from ._networks import address_in_network, dotted_netmask, is_ipv4_address, is_valid_cidr  # noqa: F401
from ._urls import UNRESERVED_SET, parse_url, requote_uri, unquote_unreserved  # noqa: F401
from .cookies import cookiejar_from_dict
from .exceptions import FileModeWarning, InvalidHeader, UnrewindableBodyError
from .structures import CaseInsensitiveDict

NETRC_FILES = (".netrc", "_netrc")
DEFAULT_PORTS = {"http": 80, "https": 443}
DEFAULT_ACCEPT_ENCODING = "gzip, deflate, br, zstd"


def __getattr__(name: str) -> str:
    # To find it takes longer than to import all else here, and it is only told.
    if name == "DEFAULT_CA_BUNDLE_PATH":
        return certs.where()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# Bodies


def super_len(o: Any) -> int:
    """The bytes that are left to read of a body; 0 where it does not tell."""
    total: int | None = None
    if isinstance(o, str):
        o = o.encode()
    if hasattr(o, "__len__"):
        total = len(o)
    elif hasattr(o, "len"):
        total = o.len
    elif hasattr(o, "fileno"):
        total = _file_size(o)
    position = 0
    if hasattr(o, "tell"):
        try:
            position = o.tell()
            if total is None and hasattr(o, "seek"):
                o.seek(0, 2)
                total = o.tell()
                o.seek(position or 0)
        except OSError:
            # A stream that claims to be a file: its length is not what is left of it, so it goes in chunks.
            position = total = total or 0
    return max(0, (total or 0) - position)


def _file_size(file: Any) -> int | None:
    try:
        size = os.fstat(file.fileno()).st_size
    except (io.UnsupportedOperation, AttributeError):
        # A member of a tar file has a fileno() that is none.
        return None
    mode = getattr(file, "mode", "b")
    if isinstance(mode, str) and "b" not in mode:
        warnings.warn(
            "the length of a file that is open as text is not that of what is read of it: open it as 'rb'",
            FileModeWarning,
            stacklevel=3,
        )
    return size


def rewind_body(prepared_request: Any) -> None:
    """Sets a body that is a file back to where it was, for it to be sent again."""
    seek = getattr(prepared_request.body, "seek", None)
    position = prepared_request._body_position
    if seek is None or not isinstance(position, int):
        raise UnrewindableBodyError("Unable to rewind request body: it has no position, or none is known")
    try:
        seek(position)
    except OSError:
        raise UnrewindableBodyError("error occurred when rewinding request body: it cannot be sent again") from None


def guess_filename(obj: Any) -> str | None:
    """The name of a file that was opened by name."""
    name = getattr(obj, "name", None)
    if name and isinstance(name, (str, bytes)) and name[:1] not in ("<", b"<") and name[-1:] not in (">", b">"):
        return os.path.basename(name)  # type: ignore[return-value]
    return None


def iter_slices(string: Any, slice_length: int | None) -> Iterator[Any]:
    """Slices of a string; all of it at once without a length."""
    if slice_length is None or slice_length <= 0:
        slice_length = len(string) or 1
    return (string[at : at + slice_length] for at in range(0, len(string), slice_length))


# Mappings


def dict_to_sequence(d: Any) -> Any:
    """The items of a mapping; anything else as it is."""
    return d.items() if hasattr(d, "items") else d


def from_key_val_list(value: Any) -> dict[Any, Any] | None:
    """A mapping of a mapping, or of pairs."""
    _refuse_scalars(value)
    return None if value is None else OrderedDict(value)


def to_key_val_list(value: Any) -> list[tuple[Any, Any]] | None:
    """A list of the pairs of a mapping, or of pairs."""
    _refuse_scalars(value)
    return None if value is None else list(value.items() if isinstance(value, (dict, Mapping)) else value)


def each_value(values: Any) -> Any:
    """The values of one name: those of a list, or a single one."""
    return [values] if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__") else values


def _refuse_scalars(value: Any) -> None:
    if isinstance(value, (str, bytes, bool, int)):
        raise ValueError(f"pairs are wanted, or a mapping, not {type(value).__name__}")


def dict_from_cookiejar(cj: Any) -> dict[str, str | None]:
    """Names and values of a jar."""
    return {cookie.name: cookie.value for cookie in cj}


def add_dict_to_cookiejar(cj: Any, cookie_dict: Any) -> Any:
    """Puts names and values into a jar."""
    return cookiejar_from_dict(cookie_dict, cj)


# Header fields


def default_user_agent(name: str = "mimus") -> str:
    """What `User-Agent` says without the caller's saying."""
    return f"{name}/{__version__}"


def default_headers() -> CaseInsensitiveDict:
    """What a new session sends."""
    return CaseInsensitiveDict(
        {
            "User-Agent": default_user_agent(),
            "Accept-Encoding": DEFAULT_ACCEPT_ENCODING,
            "Accept": "*/*",
            "Connection": "keep-alive",
        }
    )


def check_header_validity(header: tuple[Any, Any]) -> None:
    """Raises `InvalidHeader` for a name or value that may not be sent."""
    name, value = header
    try:
        if valid_header(name, value):
            return
    except TypeError:
        raise InvalidHeader(f"header {name!r} must be str or bytes, as must be its value {value!r}") from None
    raise InvalidHeader(f"header {name!r} may hold no line's end and begin with no blank, nor may its value {value!r}")


def parse_list_header(value: str) -> list[str]:
    """The members of a list between commas, without their quotes (RFC 9110 section 5.6.1)."""
    items = parse_http_list(value)
    return [unquote_header_value(item[1:-1]) if item[:1] == item[-1:] == '"' else item for item in items]


def parse_dict_header(value: str) -> dict[str, str | None]:
    """The same of a list of parameters; `None` for one without a value."""
    found: dict[str, str | None] = {}
    for item in parse_http_list(value):
        name, equals, its = item.partition("=")
        if equals and its[:1] == its[-1:] == '"':
            its = unquote_header_value(its[1:-1])
        found[name] = its if equals else None
    return found


def unquote_header_value(value: Any, is_filename: bool = False) -> Any:
    """A quoted string without quotes and escapes. The name of a file on another machine keeps its backslashes."""
    if not value or not (value[0] == value[-1] == '"'):
        return value
    value = value[1:-1]
    if is_filename and value.startswith("\\\\"):
        return value
    return value.replace("\\\\", "\\").replace('\\"', '"')


def parse_header_links(value: str) -> list[dict[str, str]]:
    """The links of a `Link` field (RFC 8288): each its `url` and parameters."""
    links = []
    value = value.strip(" '\"")
    for part in re.split(", *<", value) if value else ():
        url, _, parameters = part.partition(";")
        link = {"url": url.strip("<> '\"")}
        for parameter in parameters.split(";"):
            name, equals, its = parameter.partition("=")
            if not equals:
                break
            link[name.strip(" '\"")] = its.strip(" '\"")
        links.append(link)
    return links


def _parse_content_type_header(header: str) -> tuple[str, dict[str, str]]:
    """The media type and its parameters, without those that have no value."""
    kind, *parameters = header.split(";")
    found = {}
    for parameter in parameters:
        name, equals, its = parameter.partition("=")
        if equals:
            found[name.strip("\"' ").lower()] = its.strip("\"' ")
    return kind.strip(), found


# Text


def get_encoding_from_headers(headers: Any) -> str | None:
    """What `Content-Type` says of the text's encoding, or what it means not to say it."""
    content_type = headers.get("content-type")
    return _encoding_of_type(content_type) if content_type else None


@functools.lru_cache(maxsize=256)
def _encoding_of_type(content_type: str) -> str | None:
    kind, parameters = _parse_content_type_header(content_type)
    if "charset" in parameters:
        return parameters["charset"]
    if "text" in kind:
        # RFC 2616 section 3.7.1, which callers still count on.
        return "ISO-8859-1"
    # RFC 8259 section 8.1.
    return "utf-8" if "application/json" in kind else None


_META = re.compile(r'<meta[^>]*?charset=["\']*([^"\'>]+)', re.IGNORECASE)
_PRAGMA = re.compile(r'<meta[^>]*?content=["\']*;?charset=([^"\'>]+)', re.IGNORECASE)
_XML = re.compile(r'^<\?xml[^>]*?encoding=["\']*([^"\'>]+)')


def get_encodings_from_content(content: str) -> list[str]:
    """The encodings that HTML or XML says it has."""
    return [found for pattern in (_META, _PRAGMA, _XML) for found in pattern.findall(content)]


def stream_decode_response_unicode(iterator: Iterable[bytes], r: Any) -> Iterator[Any]:
    """Text of chunks of bytes, wherever they part characters; the bytes, if the encoding is not known."""
    if r.encoding is None:
        yield from iterator
        return
    encoding = r.encoding
    try:
        # Some codecs are not for text, or know of no replacement.
        str(b"a", encoding, "replace")
    except (LookupError, ValueError):
        encoding = "utf-8"
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for chunk in iterator:
        if text := decoder.decode(chunk):
            yield text
    if text := decoder.decode(b"", final=True):
        yield text


def get_unicode_from_response(r: Any) -> Any:
    """The text of an answer, in the encoding that its head says."""
    encoding = get_encoding_from_headers(r.headers)
    try:
        return str(r.content, encoding or "utf-8", errors="strict" if encoding else "replace")
    except (LookupError, UnicodeDecodeError):
        return str(r.content, encoding or "utf-8", errors="replace")


_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# RFC 4627 section 3: the first two characters of JSON are ASCII, so the zeros tell.
_ZEROS = {
    (False, False, False, False): "utf-8",
    (True, False, True, False): "utf-16-be",
    (False, True, False, True): "utf-16-le",
    (True, True, True, False): "utf-32-be",
    (False, True, True, True): "utf-32-le",
}


def guess_json_utf(data: bytes) -> str | None:
    """Which encoding of Unicode JSON is in, or `None`."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return encoding
    sample = data[:4]
    if 0 not in sample:
        return "utf-8"
    if len(sample) == 2:
        sample *= 2
    return _ZEROS.get(tuple(byte == 0 for byte in sample))  # type: ignore[arg-type]


# URLs and credentials


def prepend_scheme_if_needed(url: str, new_scheme: str) -> str:
    """`url` with a scheme, `new_scheme` if it had none."""
    parts = parse_url(url)
    scheme, host = parts.scheme, parts.host
    if scheme and host is None and not parts.path.startswith("/") and "//" not in url:
        # `host:port` reads as a scheme and a path.
        parts, scheme = parse_url(f"//{url}"), None
        host = parts.host
    netloc, path = host or "", parts.path
    if not netloc:
        netloc, path = path, ""
    if parts.port is not None:
        netloc = f"{netloc}:{parts.port}"
    if parts.auth:
        netloc = f"{parts.auth}@{netloc}"
    return urlunsplit((scheme or new_scheme, netloc, path, parts.query or "", parts.fragment or ""))


def urldefragauth(url: str) -> str:
    """`url` without its fragment, its name and its password."""
    scheme, netloc, path, query, _ = urlsplit(url)
    if not netloc:
        # A host alone reads as a path.
        netloc, slash, rest = path.partition("/")
        path = slash + rest
    return urlunsplit((scheme, netloc.rpartition("@")[2], path, query, ""))


def get_auth_from_url(url: str) -> tuple[str, str]:
    """The name and the password in a URL, both empty if either is missing."""
    parts = urlsplit(url)
    try:
        return unquote(parts.username or ""), unquote(parts.password)  # type: ignore[arg-type]
    except (AttributeError, TypeError):
        return "", ""


def get_netrc_auth(url: Any, raise_errors: bool = False) -> tuple[str, str] | None:
    """The name and the password that the user's netrc file has for the URL's host.

    The file is `$NETRC`, or `.netrc` or `_netrc` at home. `raise_errors` says whether one that cannot be read is an
    error, or as if it were not there.
    """
    named = os.environ.get("NETRC")
    paths = (named,) if named is not None else _netrc_paths(os.environ.get("HOME"))
    path = next((each for each in paths if os.access(each, os.F_OK)), None)
    host = urlsplit(url).hostname if path is not None else None
    if path is None or host is None:
        return None
    try:
        its = os.stat(path)
        read = _netrc(path, (its.st_ino, its.st_size, its.st_mtime_ns))
    except (NetrcParseError, OSError):
        if raise_errors:
            raise
        return None
    found = read.authenticators(host if isinstance(host, str) else host.decode("ascii"))
    if not found or not any(found):
        return None
    login, account, password = found
    return login or account or "", password or ""


@functools.lru_cache(maxsize=4)
def _netrc(path: str, state: tuple[int, int, int]) -> netrc:
    """The file as it was in that state."""
    return netrc(path)


@functools.lru_cache(maxsize=4)
def _netrc_paths(home: str | None) -> tuple[str, ...]:
    return tuple(os.path.expanduser(f"~/{name}") for name in NETRC_FILES)


# Proxies


@contextlib.contextmanager
def set_environ(env_name: str, value: str | None) -> Iterator[None]:
    """Sets an environment variable for a while, unless `value` is `None`."""
    if value is None:
        yield
        return
    before = os.environ.get(env_name)
    os.environ[env_name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[env_name]
        else:
            os.environ[env_name] = before


def should_bypass_proxies(url: str, no_proxy: str | None) -> bool:
    """Whether `no_proxy`, or without it the environment's or the system's settings, keep the URL from proxies."""
    given = no_proxy
    if no_proxy is None:
        no_proxy = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    parts = urlsplit(url)
    host = parts.hostname
    if host is None:
        return True
    if no_proxy and _listed(host, parts.port, no_proxy.replace(" ", "").split(",")):
        return True
    try:
        return bool(proxy_bypass(host) if given is None else proxy_bypass_environment(host, {"no": given}))
    except (TypeError, OSError):
        return False


def _listed(host: str, port: int | None, entries: Iterable[str]) -> bool:
    entries = [entry for entry in entries if entry]
    if is_ipv4_address(host):
        return any(address_in_network(host, each) if is_valid_cidr(each) else host == each for each in entries)
    names = {host} if port is None else {host, f"{host}:{port}"}
    bare = (entry.lstrip(".") for entry in entries)
    # A whole domain, and those below it: `e.test` is no part of `some.test`.
    return any(name == entry or name.endswith(f".{entry}") for entry in bare for name in names)


def get_environ_proxies(url: str, no_proxy: str | None = None) -> dict[str, str]:
    """The proxies of the environment for a URL, by scheme; none where they are bypassed."""
    if getproxies is getproxies_environment and not _names_a_proxy():
        return {}
    return {} if should_bypass_proxies(url, no_proxy=no_proxy) else getproxies()


def _names_a_proxy() -> bool:
    # Asked for each request: all names at once, as they lie there, before each is made a string.
    names = getattr(os.environ, "_data", os.environ)
    if isinstance(next(iter(names), ""), bytes):
        return b"_proxy" in b" ".join(names).lower()  # type: ignore[arg-type]
    return "_proxy" in " ".join(names).lower()


def select_proxy(url: str, proxies: Mapping[str, str] | None) -> str | None:
    """The proxy for a URL: of its scheme and host, of its scheme, of its host, or of all."""
    if not proxies:
        return None
    parts = urlsplit(url)
    if parts.hostname is None:
        return proxies.get(parts.scheme, proxies.get("all"))
    keys = (f"{parts.scheme}://{parts.hostname}", parts.scheme, f"all://{parts.hostname}", "all")
    return next((proxies[key] for key in keys if key in proxies), None)


def resolve_proxies(request: Any, proxies: Mapping[str, str] | None, trust_env: bool = True) -> dict[str, str]:
    """`proxies`, and for the request's scheme the environment's, where `proxies` has none."""
    chosen = dict(proxies) if proxies is not None else {}
    scheme = urlsplit(request.url).scheme
    no_proxy = chosen.get("no_proxy")
    if trust_env:
        environment = get_environ_proxies(request.url, no_proxy=no_proxy)
        found = environment.get(scheme, environment.get("all"))
        if found:
            chosen.setdefault(scheme, found)
    return chosen


# Files


def extract_zipped_paths(path: str) -> str:
    """`path`, or, if it lies within a zip file, a copy of what it names there."""
    if os.path.exists(path):
        return path
    archive, member = os.path.split(path)
    while archive and not os.path.exists(archive):
        archive, last = os.path.split(archive)
        if not last:
            return path
        member = f"{last}/{member}"
    import zipfile  # asked for by few, and slow to import

    if not archive or not zipfile.is_zipfile(archive):
        return path
    with zipfile.ZipFile(archive) as opened:
        if member not in opened.namelist():
            return path
        target = os.path.join(tempfile.gettempdir(), os.path.basename(member))
        if not os.path.exists(target):
            with atomic_open(target) as file:
                file.write(opened.read(member))
    return target


@contextlib.contextmanager
def atomic_open(filename: str) -> Iterator[Any]:
    """A file to write that has its name once it is whole."""
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(filename))
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.replace(temporary, filename)
    except BaseException:
        os.remove(temporary)
        raise
