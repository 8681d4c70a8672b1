"""Cookies, in a jar of Python's `http.cookiejar` that is a mapping of names as well."""

from __future__ import annotations

import calendar
import copy
import threading
import time
from collections.abc import Iterator, MutableMapping
from http import cookiejar as cookielib
from http.cookies import Morsel
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ._internal_utils import to_native_string


class CookieConflictError(RuntimeError):
    """More than one cookie has the name; say the domain or the path as well."""


class MockRequest:
    """A request as `http.cookiejar` wants it: it takes the header from here that the jar makes."""

    type: str

    def __init__(self, request: Any) -> None:
        self._r = request
        self._new_headers: dict[str, str] = {}
        url = urlsplit(str(request.url))
        self.type = url.scheme
        self.host: str = url.netloc
        self.origin_req_host: str = url.netloc
        self.unverifiable = True

    def get_type(self) -> str:
        return self.type

    def get_host(self) -> str:
        return self.host

    def get_origin_req_host(self) -> str:
        return self.origin_req_host

    def get_full_url(self) -> str:
        # A `Host` of the caller's is whose cookies they are.
        url, host = str(self._r.url), self._r.headers.get("Host")
        if not host:
            return url
        return urlunsplit(urlsplit(url)._replace(netloc=to_native_string(host, "utf-8")))

    def is_unverifiable(self) -> bool:
        return self.unverifiable

    def has_header(self, name: str) -> bool:
        return name in self._r.headers or name in self._new_headers

    def get_header(self, name: str, default: str | None = None) -> Any:
        return self._r.headers.get(name, self._new_headers.get(name, default))

    def add_header(self, key: str, val: str) -> None:
        raise NotImplementedError("a cookie jar adds its header with add_unredirected_header()")

    def add_unredirected_header(self, name: str, value: str) -> None:
        self._new_headers[name] = value

    def get_new_headers(self) -> dict[str, str]:
        return self._new_headers


class MockResponse:
    """The head of an answer as `http.cookiejar` wants it: `headers` has `get_all`, as an `email.message` has."""

    def __init__(self, headers: Any) -> None:
        self._headers = headers

    def info(self) -> Any:
        return self._headers

    def getheaders(self, name: str) -> Any:
        return self._headers.get_all(name)


def extract_cookies_to_jar(jar: Any, request: Any, response: Any) -> None:
    """Puts into `jar` what the answer `response` (a `Response.raw`) to `request` sets."""
    original = getattr(response, "_original_response", None)
    headers = getattr(original, "msg", None) if original is not None else getattr(response, "headers", None)
    if headers is not None and hasattr(headers, "get_all") and "set-cookie" in headers:
        jar.extract_cookies(MockResponse(headers), MockRequest(request))


def get_cookie_header(jar: Any, request: Any) -> str | None:
    """What `Cookie` says to the request, or `None`."""
    if type(jar) is RequestsCookieJar and not jar._cookies:
        return None
    asked: Any = MockRequest(request)
    jar.add_cookie_header(asked)
    found: str | None = asked.get_new_headers().get("Cookie")
    return found


def remove_cookie_by_name(cookiejar: Any, name: str, domain: str | None = None, path: str | None = None) -> None:
    """Removes the cookies of that name, of all domains and paths or of one."""
    for cookie in list(cookiejar):
        if cookie.name == name and domain in (None, cookie.domain) and path in (None, cookie.path):
            cookiejar.clear(cookie.domain, cookie.path, cookie.name)


class RequestsCookieJar(cookielib.CookieJar, MutableMapping[str, Any]):  # type: ignore[misc]
    """A `CookieJar` that is also a mapping of names to values.

    A name that several domains or paths have set is a `CookieConflictError`, unless `get` and `set` are told which.
    """

    def __init__(self, policy: cookielib.CookiePolicy | None = None) -> None:
        # Two jars are made for a request, and seldom asked: a policy is made when one is.
        self._cookies_lock = threading.RLock()
        self._cookies: dict[str, Any] = {}
        if policy is not None:
            self._policy = policy

    def __getattr__(self, name: str) -> Any:
        if name != "_policy":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._policy = cookielib.DefaultCookiePolicy()
        return self._policy

    def get(self, name: str, default: Any = None, domain: str | None = None, path: str | None = None) -> Any:
        """The value of the cookie, or `default`."""
        try:
            return self._only(name, domain, path)
        except KeyError:
            return default

    def set(self, name: str, value: Any, **kwargs: Any) -> cookielib.Cookie | None:
        """Sets a cookie, or with the value `None` removes it. `kwargs` are those of `create_cookie`."""
        if value is None:
            remove_cookie_by_name(self, name, domain=kwargs.get("domain"), path=kwargs.get("path"))
            return None
        cookie = morsel_to_cookie(value) if isinstance(value, Morsel) else create_cookie(name, value, **kwargs)
        self.set_cookie(cookie)
        return cookie

    def set_cookie(self, cookie: cookielib.Cookie, *args: Any, **kwargs: Any) -> None:
        # http.cookiejar sees quotes that were escaped; servers that escape them want them back without.
        value = cookie.value
        if isinstance(value, str) and value.startswith('"') and value.endswith('"'):
            cookie.value = value.replace('\\"', "")
        super().set_cookie(cookie, *args, **kwargs)

    def iterkeys(self) -> Iterator[str]:
        return (cookie.name for cookie in iter(self))

    def itervalues(self) -> Iterator[str | None]:
        return (cookie.value for cookie in iter(self))

    def iteritems(self) -> Iterator[tuple[str, str | None]]:
        return ((cookie.name, cookie.value) for cookie in iter(self))

    def keys(self) -> list[str]:  # type: ignore[override]
        return list(self.iterkeys())

    def values(self) -> list[str | None]:  # type: ignore[override]
        return list(self.itervalues())

    def items(self) -> list[tuple[str, str | None]]:  # type: ignore[override]
        return list(self.iteritems())

    def list_domains(self) -> list[str]:
        """Each domain once."""
        return list(dict.fromkeys(cookie.domain for cookie in iter(self)))

    def list_paths(self) -> list[str]:
        """Each path once."""
        return list(dict.fromkeys(cookie.path for cookie in iter(self)))

    def multiple_domains(self) -> bool:
        """Whether a domain has more than one cookie."""
        domains = [cookie.domain for cookie in iter(self) if cookie.domain is not None]
        return len(domains) != len(set(domains))

    def get_dict(self, domain: str | None = None, path: str | None = None) -> dict[str, str | None]:
        """Names and values, of all cookies, or those of a domain or path."""
        return {
            cookie.name: cookie.value
            for cookie in iter(self)
            if domain in (None, cookie.domain) and path in (None, cookie.path)
        }

    def __contains__(self, name: object) -> bool:
        return any(cookie.name == name for cookie in iter(self))

    def __getitem__(self, name: str) -> str | None:
        return self._only(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self.set(name, value)

    def __delitem__(self, name: str) -> None:
        remove_cookie_by_name(self, name)

    def update(self, other: Any = (), /, **kwargs: Any) -> None:
        """Takes the cookies of another jar, or the names and values of a mapping."""
        if isinstance(other, cookielib.CookieJar):
            for cookie in other:
                self.set_cookie(copy.copy(cookie))
            other = ()
        super().update(other, **kwargs)

    def _only(self, name: str, domain: str | None = None, path: str | None = None) -> str | None:
        found = [
            cookie.value
            for cookie in iter(self)
            if cookie.name == name and domain in (None, cookie.domain) and path in (None, cookie.path)
        ]
        if not found:
            raise KeyError(f"name={name!r}, domain={domain!r}, path={path!r}")
        if len(found) > 1:
            raise CookieConflictError(f"{len(found)} cookies are called {name!r}")
        return found[0]

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_cookies_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._cookies_lock = threading.RLock()

    def copy(self) -> RequestsCookieJar:
        """A jar of its own with the same cookies and policy."""
        new = RequestsCookieJar(policy=self.__dict__.get("_policy"))
        new.update(self)
        return new

    def get_policy(self) -> cookielib.CookiePolicy:
        return self._policy


def _copy_cookie_jar(jar: Any) -> Any:
    if jar is None or hasattr(jar, "copy"):
        return None if jar is None else jar.copy()
    # One of Python's, which has no copy().
    new = copy.copy(jar)
    new.clear()
    for cookie in jar:
        new.set_cookie(copy.copy(cookie))
    return new


def create_cookie(name: str, value: str, **kwargs: Any) -> cookielib.Cookie:
    """A cookie. Without `domain` it is sent to every host, as one that a server would set can not be.

    `kwargs` are attributes of `http.cookiejar.Cookie`, with `rest` for those it has no argument for.
    """
    given: dict[str, Any] = {
        "version": 0,
        "name": name,
        "value": value,
        "port": None,
        "domain": "",
        "path": "/",
        "secure": False,
        "expires": None,
        "discard": True,
        "comment": None,
        "comment_url": None,
        "rest": {"HttpOnly": None},
        "rfc2109": False,
    }
    unknown = kwargs.keys() - given.keys()
    if unknown:
        raise TypeError(f"create_cookie() got unexpected keyword arguments: {sorted(unknown)}")
    given.update(kwargs)
    given["port_specified"] = bool(given["port"])
    given["domain_specified"] = bool(given["domain"])
    given["domain_initial_dot"] = given["domain"].startswith(".")
    given["path_specified"] = bool(given["path"])
    return cookielib.Cookie(**given)


def morsel_to_cookie(morsel: Morsel[Any]) -> cookielib.Cookie:
    """A cookie of what `http.cookies` parsed."""
    expires: int | None = None
    if morsel["max-age"]:
        try:
            expires = int(time.time()) + int(morsel["max-age"])
        except ValueError:
            raise TypeError(f"max-age: {morsel['max-age']!r} must be a number of seconds") from None
    elif morsel["expires"]:
        expires = calendar.timegm(time.strptime(morsel["expires"], "%a, %d-%b-%Y %H:%M:%S GMT"))
    return create_cookie(
        morsel.key,
        morsel.value,
        comment=morsel["comment"],
        comment_url=bool(morsel["comment"]),
        discard=False,
        domain=morsel["domain"],
        expires=expires,
        path=morsel["path"],
        rest={"HttpOnly": morsel["httponly"]},
        secure=bool(morsel["secure"]),
        version=morsel["version"] or 0,
    )


def cookiejar_from_dict(cookie_dict: Any, cookiejar: Any = None, overwrite: bool = True) -> Any:
    """Puts names and values into `cookiejar`, or into a new jar; `overwrite` says whether over those that are there."""
    jar = RequestsCookieJar() if cookiejar is None else cookiejar
    if cookie_dict:
        there = set() if overwrite else {cookie.name for cookie in jar}
        for name, value in cookie_dict.items():
            if name not in there:
                jar.set_cookie(create_cookie(name, value))
    return jar


def merge_cookies(cookiejar: Any, cookies: Any) -> Any:
    """Adds the cookies of a jar, or those of a mapping that are not there yet."""
    if not isinstance(cookiejar, cookielib.CookieJar):
        raise ValueError("cookies can be added to a CookieJar only")
    if type(cookies) is RequestsCookieJar and not cookies._cookies:
        return cookiejar
    if isinstance(cookies, cookielib.CookieJar):
        for cookie in cookies:
            cookiejar.set_cookie(copy.copy(cookie))
    elif cookies:
        cookiejar_from_dict(cookies, cookiejar, overwrite=False)
    return cookiejar
