"""Names that moved between Pythons once, where callers of requests still look for them."""

from __future__ import annotations

import functools
import importlib
import json
import sys
import urllib.request
from collections import OrderedDict
from collections.abc import Callable, Mapping, MutableMapping
from http import cookiejar as cookielib
from http.cookies import Morsel
from io import StringIO
from json import JSONDecodeError
from types import ModuleType
from urllib.parse import (
    quote,
    quote_plus,
    unquote,
    unquote_plus,
    urldefrag,
    urlencode,
    urljoin,
    urlparse,
    urlsplit,
    urlunparse,
)
from urllib.request import getproxies, getproxies_environment, parse_http_list, proxy_bypass

# typeshed does not know it.
proxy_bypass_environment: Callable[..., bool] = getattr(urllib.request, "proxy_bypass_environment")

is_py2 = False
is_py3 = True
is_urllib3_1 = False
has_simplejson = False

builtin_str = str
str = str
bytes = bytes
basestring: tuple[type, ...] = (str, bytes)
numeric_types: tuple[type, ...] = (int, float)
integer_types: tuple[type, ...] = (int,)


@functools.cache
def char_detection() -> ModuleType | None:
    """What guesses the encoding of text, if it is installed: chardet, or else charset_normalizer."""
    for name in ("chardet", "charset_normalizer"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def __getattr__(name: str) -> ModuleType | None:
    if name == "chardet":
        return char_detection()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Callable",
    "JSONDecodeError",
    "Mapping",
    "ModuleType",
    "Morsel",
    "MutableMapping",
    "OrderedDict",
    "StringIO",
    "basestring",
    "builtin_str",
    "bytes",
    "char_detection",
    "cookielib",
    "getproxies",
    "getproxies_environment",
    "has_simplejson",
    "integer_types",
    "is_py2",
    "is_py3",
    "is_urllib3_1",
    "json",
    "numeric_types",
    "parse_http_list",
    "proxy_bypass",
    "proxy_bypass_environment",
    "quote",
    "quote_plus",
    "str",
    "sys",
    "unquote",
    "unquote_plus",
    "urldefrag",
    "urlencode",
    "urljoin",
    "urlparse",
    "urlsplit",
    "urlunparse",
]
