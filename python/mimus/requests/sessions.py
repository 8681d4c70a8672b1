"""Sessions: what requests have in common, cookies and connections among it."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from http import cookiejar as cookielib
from typing import Any, ClassVar
from urllib.parse import urljoin, urlsplit, urlunsplit

from ._internal_utils import to_native_string
from ._urls import requote_uri
from .adapters import HTTPAdapter
from .auth import _basic_auth_str
from .cookies import RequestsCookieJar, cookiejar_from_dict, extract_cookies_to_jar, merge_cookies
from .exceptions import (
    ChunkedEncodingError,
    ContentDecodingError,
    InvalidSchema,
    InvalidURL,
    RequestException,
    TooManyRedirects,
)
from .hooks import default_hooks, dispatch_hook
from .models import DEFAULT_REDIRECT_LIMIT, REDIRECT_STATI, PreparedRequest, Request
from .status_codes import codes
from .structures import CaseInsensitiveDict
from .utils import (
    DEFAULT_PORTS,
    default_headers,
    get_auth_from_url,
    get_environ_proxies,
    get_netrc_auth,
    resolve_proxies,
    rewind_body,
    to_key_val_list,
)

preferred_clock: Callable[[], float] = time.perf_counter

_MAPPINGS = (dict, CaseInsensitiveDict, OrderedDict)
_OF_BODY = ("Content-Length", "Content-Type", "Transfer-Encoding")


def merge_setting(request_setting: Any, session_setting: Any, dict_class: Any = OrderedDict) -> Any:
    """A setting of a request, or the session's. Of mappings, both, without what the request sets to `None`."""
    if session_setting is None:
        return request_setting
    if request_setting is None:
        return session_setting
    if not (_is_mapping(session_setting) and _is_mapping(request_setting)):
        return request_setting
    if not (session_setting or request_setting):
        return dict_class()
    own = session_setting if isinstance(session_setting, dict_class) else to_key_val_list(session_setting)
    merged = dict_class(own)
    if request_setting:
        merged.update(to_key_val_list(request_setting))
    for name, value in list(merged.items()):
        if value is None:
            del merged[name]
    return merged


def _is_mapping(setting: Any) -> bool:
    # To ask the abstract class takes longer than all else here.
    return type(setting) in _MAPPINGS or isinstance(setting, Mapping)


def merge_hooks(request_hooks: Any, session_hooks: Any, dict_class: Any = OrderedDict) -> Any:
    """The hooks of a request, or, if it has none, the session's."""
    if session_hooks is None or not session_hooks.get("response"):
        return request_hooks
    if request_hooks is None or not request_hooks.get("response"):
        return session_hooks
    return merge_setting(request_hooks, session_hooks, dict_class)


class SessionRedirectMixin:
    """How redirects are followed."""

    cookies: Any
    max_redirects: int
    trust_env: bool

    def send(self, request: PreparedRequest, **kwargs: Any) -> Any:
        raise NotImplementedError

    def get_redirect_target(self, resp: Any) -> str | None:
        """Where an answer leads, as it says it, or `None`."""
        if not resp.is_redirect:
            return None
        location: str = resp.headers["location"]
        try:
            # Fields are read as ISO 8859-1; who writes more than ASCII writes UTF-8.
            return location.encode("latin1").decode("utf8")
        except UnicodeError:
            return location

    def should_strip_auth(self, old_url: str, new_url: str) -> bool:
        """Whether credentials for one URL are not for the other: another host or port, or TLS no more."""
        old, new = urlsplit(old_url), urlsplit(new_url)
        if old.hostname != new.hostname:
            return True
        # From http to https on the usual ports is the same server's better self.
        if (old.scheme, new.scheme) == ("http", "https") and old.port in (80, None) and new.port in (443, None):
            return False
        if old.scheme != new.scheme:
            return True
        usual = DEFAULT_PORTS.get(old.scheme)
        return (old.port or usual) != (new.port or usual)

    def resolve_redirects(
        self,
        resp: Any,
        req: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
        yield_requests: bool = False,
        **adapter_kwargs: Any,
    ) -> Iterator[Any]:
        """Follows redirects from `resp`, the answer to `req`: gives each answer, or with `yield_requests` each request.

        Raises `TooManyRedirects`.
        """
        followed: list[Any] = []
        fragment = None
        while target := self.get_redirect_target(resp):
            if fragment is None:
                fragment = urlsplit(req.url or "").fragment
            resp.history = followed.copy()
            followed.append(resp)
            _finish(resp)
            if len(resp.history) >= self.max_redirects:
                raise TooManyRedirects(f"more than {self.max_redirects} redirects", response=resp)
            resp.close()
            try:
                url = _absolute(target, resp.url, fragment)
                fragment = urlsplit(url).fragment
                proxies, req = self._redirected(resp, req, url, proxies)
            except RequestException:
                raise
            except ValueError as error:
                # Of urllib.parse, for a host or a port that is none.
                raise InvalidURL(f"a redirect to {target!r}: {error}", response=resp) from error
            if yield_requests:
                yield req
                continue
            resp = self.send(
                req,
                stream=stream,
                timeout=timeout,
                verify=verify,
                cert=cert,
                proxies=proxies,
                allow_redirects=False,
                **adapter_kwargs,
            )
            extract_cookies_to_jar(self.cookies, req, resp.raw)
            yield resp

    def _redirected(self, resp: Any, req: PreparedRequest, url: str, proxies: Any) -> tuple[Any, PreparedRequest]:
        """The request that `resp` leads to, and its proxies."""
        new = req.copy()
        new.url = url
        self.rebuild_method(new, resp)
        if resp.status_code not in (codes.temporary_redirect, codes.permanent_redirect):
            for name in _OF_BODY:
                new.headers.pop(name, None)
            new.body = None
        new.headers.pop("Cookie", None)
        extract_cookies_to_jar(new._cookies, req, resp.raw)
        merge_cookies(new._cookies, self.cookies)
        new.prepare_cookies(new._cookies)
        proxies = self.rebuild_proxies(new, proxies)
        self.rebuild_auth(new, resp)
        if new._body_position is not None and new.body is not None:
            rewind_body(new)
        return proxies, new

    def rebuild_auth(self, prepared_request: PreparedRequest, response: Any) -> None:
        """Takes credentials out that are not for where the redirect leads, and puts those of netrc in."""
        headers, url = prepared_request.headers, prepared_request.url
        if "Authorization" in headers and self.should_strip_auth(response.request.url, url):  # type: ignore[arg-type]
            del headers["Authorization"]
        found = get_netrc_auth(url) if self.trust_env else None
        if found is not None:
            prepared_request.prepare_auth(found)

    def rebuild_proxies(self, prepared_request: PreparedRequest, proxies: Any) -> dict[str, str]:
        """The proxies for where a redirect leads; the credentials for the last one are taken out."""
        headers = prepared_request.headers
        scheme = urlsplit(prepared_request.url).scheme
        chosen = resolve_proxies(prepared_request, proxies, self.trust_env)
        headers.pop("Proxy-Authorization", None)
        username, password = get_auth_from_url(chosen[scheme]) if scheme in chosen else ("", "")
        # A tunnel's are told to the proxy, and not to the server behind it.
        if username and password and scheme != "https":
            headers["Proxy-Authorization"] = _basic_auth_str(username, password)
        return chosen

    def rebuild_method(self, prepared_request: PreparedRequest, response: Any) -> None:
        """Makes it a GET where browsers do (RFC 9110 section 15.4)."""
        method, status = prepared_request.method, response.status_code
        other = status in (codes.see_other, codes.found) and method != "HEAD"
        if other or (status == codes.moved and method == "POST"):
            prepared_request.method = "GET"


def _finish(resp: Any) -> None:
    """Reads an answer to its end, so that its connection can serve again."""
    try:
        _ = resp.content
    except (ChunkedEncodingError, ContentDecodingError, RuntimeError):
        resp.raw.read(decode_content=False)


def _absolute(target: str, base: str, fragment: str) -> str:
    """Where `target` leads from `base`; a fragment that it does not have is the last one (RFC 9110 section 10.2.2)."""
    if target.startswith("//"):
        target = f"{urlsplit(base).scheme}:{target}"
    parts = urlsplit(target)
    target = urlunsplit(parts._replace(fragment=parts.fragment or fragment))
    return to_native_string(requote_uri(target if parts.netloc else urljoin(base, requote_uri(target))))


class Session(SessionRedirectMixin):
    """What requests have in common: header fields, cookies, credentials, proxies, and the connections they share.

    Threads may share one as far as requests lets them: the connections are safe, the settings are plain attributes.
    """

    __attrs__: ClassVar[list[str]] = [
        "headers",
        "cookies",
        "auth",
        "proxies",
        "hooks",
        "params",
        "verify",
        "cert",
        "adapters",
        "stream",
        "trust_env",
        "max_redirects",
    ]

    def __init__(self) -> None:
        self.headers: Any = default_headers()
        self.auth: Any = None
        self.proxies: Any = {}
        self.hooks: Any = default_hooks()
        self.params: Any = {}
        self.stream = False
        self.verify: Any = True
        self.cert: Any = None
        self.max_redirects = DEFAULT_REDIRECT_LIMIT
        self.trust_env = True
        self.cookies: Any = RequestsCookieJar()
        self.adapters: Any = OrderedDict()
        self.mount("https://", HTTPAdapter())
        self.mount("http://", HTTPAdapter())

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def prepare_request(self, request: Request) -> PreparedRequest:
        """What is sent of a request, with what is the session's."""
        cookies = request.cookies
        if cookies and not isinstance(cookies, cookielib.CookieJar):
            cookies = cookiejar_from_dict(cookies)
        auth = request.auth
        if self.trust_env and not auth and not self.auth:
            auth = get_netrc_auth(request.url)
        prepared = PreparedRequest()
        prepared.prepare(
            method=request.method.upper(),  # type: ignore[union-attr]
            url=request.url,
            files=request.files,
            data=request.data,
            json=request.json,
            headers=merge_setting(request.headers, self.headers, dict_class=CaseInsensitiveDict),
            params=merge_setting(request.params, self.params),
            auth=merge_setting(auth, self.auth),
            cookies=merge_cookies(merge_cookies(RequestsCookieJar(), self.cookies), cookies),
            hooks=merge_hooks(request.hooks, self.hooks),
        )
        return prepared

    def request(
        self,
        method: str,
        url: Any,
        params: Any = None,
        data: Any = None,
        headers: Any = None,
        cookies: Any = None,
        files: Any = None,
        auth: Any = None,
        timeout: Any = None,
        allow_redirects: bool = True,
        proxies: Any = None,
        hooks: Any = None,
        stream: bool | None = None,
        verify: Any = None,
        cert: Any = None,
        json: Any = None,
    ) -> Any:
        """Sends a request.

        Args:
            method: Its method.
            url: Its URL.
            params: What to add to the query: a mapping, pairs, or a string.
            data: The body: a form of a mapping or of pairs, or a string, bytes, a file, an iterable of bytes.
            headers: Header fields; `None` takes one of the session's away.
            cookies: Cookies for this request alone: a mapping or a jar.
            files: Files of a form: by name a file, its content, or `(filename, content[, content type[, headers]])`.
            auth: Credentials: `(user, password)`, or what is called with the request.
            timeout: Seconds to connect and to wait for each part of the answer, or a pair of these.
            allow_redirects: Whether to follow redirects.
            proxies: URLs of proxies by scheme, or by scheme and host.
            hooks: What is called when the answer has come: `{"response": callable}`, or a list of them.
            stream: Whether to return before the body has been read.
            verify: Whether to trust only known authorities; or a path to those to trust.
            cert: A path to a client's certificate and key, or a pair of these.
            json: What to send as JSON.

        Raises:
            RequestException: It failed.
        """
        request = Request(
            method=method.upper(),
            url=url,
            headers=headers,
            files=files,
            data=data or {},
            json=json,
            params=params or {},
            auth=auth,
            cookies=cookies,
            hooks=hooks,
        )
        prepared = self.prepare_request(request)
        settings = self.merge_environment_settings(prepared.url, proxies or {}, stream, verify, cert)  # type: ignore[arg-type]
        return self.send(prepared, timeout=timeout, allow_redirects=allow_redirects, **settings)

    def get(self, url: Any, params: Any = None, **kwargs: Any) -> Any:
        """Sends a GET request."""
        kwargs.setdefault("allow_redirects", True)
        return self.request("GET", url, params=params, **kwargs)

    def options(self, url: Any, **kwargs: Any) -> Any:
        """Sends an OPTIONS request."""
        kwargs.setdefault("allow_redirects", True)
        return self.request("OPTIONS", url, **kwargs)

    def head(self, url: Any, **kwargs: Any) -> Any:
        """Sends a HEAD request. It follows redirects only if `allow_redirects` says so."""
        kwargs.setdefault("allow_redirects", False)
        return self.request("HEAD", url, **kwargs)

    def post(self, url: Any, data: Any = None, json: Any = None, **kwargs: Any) -> Any:
        """Sends a POST request."""
        return self.request("POST", url, data=data, json=json, **kwargs)

    def put(self, url: Any, data: Any = None, **kwargs: Any) -> Any:
        """Sends a PUT request."""
        return self.request("PUT", url, data=data, **kwargs)

    def patch(self, url: Any, data: Any = None, **kwargs: Any) -> Any:
        """Sends a PATCH request."""
        return self.request("PATCH", url, data=data, **kwargs)

    def delete(self, url: Any, **kwargs: Any) -> Any:
        """Sends a DELETE request."""
        return self.request("DELETE", url, **kwargs)

    def send(self, request: PreparedRequest, **kwargs: Any) -> Any:
        """Sends what `prepare_request` has made; `kwargs` are those of `request` that are not in it."""
        kwargs.setdefault("stream", self.stream)
        kwargs.setdefault("verify", self.verify)
        kwargs.setdefault("cert", self.cert)
        if "proxies" not in kwargs:
            kwargs["proxies"] = resolve_proxies(request, self.proxies, self.trust_env)
        if isinstance(request, Request):
            raise ValueError("You can only send PreparedRequests.")
        allow_redirects = kwargs.pop("allow_redirects", True)
        adapter = self.get_adapter(url=request.url)  # type: ignore[arg-type]
        start = preferred_clock()
        response = adapter.send(request, **kwargs)
        # Until the head: the body may have been read since.
        took = getattr(response.raw, "until_head", None) or preferred_clock() - start
        response.elapsed = timedelta(seconds=took)
        response = dispatch_hook("response", request.hooks, response, **kwargs)
        # A hook may have made more than one exchange of it.
        for each in (*response.history, response):
            extract_cookies_to_jar(self.cookies, each.request, each.raw)
        if allow_redirects:
            answers = list(self.resolve_redirects(response, request, **kwargs))
            if answers:
                last = answers.pop()
                last.history = [response, *answers]
                response = last
        else:
            response._next = next(self.resolve_redirects(response, request, yield_requests=True, **kwargs), None)
        if not kwargs["stream"]:
            _ = response.content
        return response

    def merge_environment_settings(self, url: str, proxies: Any, stream: Any, verify: Any, cert: Any) -> dict[str, Any]:
        """The settings of a request together with the environment's and the session's."""
        if self.trust_env:
            no_proxy = proxies.get("no_proxy") if proxies is not None else None
            found = get_environ_proxies(url, no_proxy=no_proxy)
            proxies = {**found, **(proxies or {})} if found else proxies
            if verify is True or verify is None:
                environment = os.environ
                verify = environment.get("REQUESTS_CA_BUNDLE") or environment.get("CURL_CA_BUNDLE") or verify
        return {
            "proxies": merge_setting(proxies, self.proxies),
            "stream": merge_setting(stream, self.stream),
            "verify": merge_setting(verify, self.verify),
            "cert": merge_setting(cert, self.cert),
        }

    def get_adapter(self, url: str) -> Any:
        """The adapter with the longest prefix of `url`, in any case. Raises `InvalidSchema` if there is none."""
        folded = url.lower()
        for prefix, adapter in self.adapters.items():
            if folded.startswith(prefix.lower()):
                return adapter
        raise InvalidSchema(f"no adapter serves {url!r}")

    def close(self) -> None:
        """Closes all connections."""
        for adapter in self.adapters.values():
            adapter.close()

    def mount(self, prefix: str, adapter: Any) -> None:
        """Has `adapter` serve the URLs that begin so."""
        self.adapters[prefix] = adapter
        by_length = sorted(self.adapters.items(), key=lambda item: -len(item[0]))
        self.adapters.clear()
        self.adapters.update(by_length)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name, None) for name in self.__attrs__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)


def session() -> Session:
    """A new session."""
    return Session()


__all__ = [
    "REDIRECT_STATI",
    "HTTPAdapter",
    "Session",
    "SessionRedirectMixin",
    "merge_hooks",
    "merge_setting",
    "preferred_clock",
    "session",
]
