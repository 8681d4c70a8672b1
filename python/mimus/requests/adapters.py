"""What sends: an adapter over the native client, which is here a transport and nothing more."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

import mimus

from . import _retry
from ._errors import send_error
from ._raw import HTTPResponse
from ._retry import MaxRetryError, ResponseError, Retry
from ._urls import parse_url
from .auth import _basic_auth_str
from .cookies import extract_cookies_to_jar
from .exceptions import InvalidHeader, InvalidProxyURL, InvalidURL, RetryError, SSLError
from .models import Response
from .structures import CaseInsensitiveDict
from .utils import (
    get_auth_from_url,
    get_encoding_from_headers,
    prepend_scheme_if_needed,
    rewind_body,
    select_proxy,
    urldefragauth,
)

DEFAULT_POOLBLOCK = False
DEFAULT_POOLSIZE = 10
DEFAULT_RETRIES = 0
DEFAULT_POOL_TIMEOUT = None

# What is read of a file that is sent in chunks, in bytes.
_PIECE = 1 << 16

# All that the native client would do beyond an exchange is a session's here.
_BARE: dict[str, Any] = {
    "default_headers": False,
    "follow_redirects": False,
    "cookies": False,
    "trust_env": False,
}


class PoolManager:
    """Native clients, one for each way to do TLS, all with the same proxy or with none.

    `pools` has them by `(verify, cert)`, or by `None` where there is no TLS. Each keeps connections to any number of
    hosts.
    """

    def __init__(self, proxy: str | None = None, **options: Any) -> None:
        self.proxy = proxy
        self.options = options
        self.pools: dict[Any, mimus.Client] = {}
        self._lock = threading.Lock()

    def pool_for(self, verify: Any, cert: Any) -> mimus.Client:
        """The client for URLs of https. Raises `OSError` where a file is not there."""
        key = verify, tuple(cert) if isinstance(cert, list) else cert
        found = self.pools.get(key)
        return found if found is not None else self._made(key, **_tls(*key))

    def plain_pool(self) -> mimus.Client:
        """The client for URLs of http."""
        found = self.pools.get(None)
        return found if found is not None else self._made(None)

    def _made(self, key: Any, **tls: Any) -> mimus.Client:
        with self._lock:
            if key not in self.pools:
                proxy = False if self.proxy is None else self.proxy
                options: dict[str, Any] = {**_BARE, "proxy": proxy, **tls, **self.options}
                self.pools[key] = mimus.Client(**options)
            return self.pools[key]

    def clear(self) -> None:
        """Closes all connections that are not in use; the rest when they are not any more."""
        with self._lock:
            clients = list(self.pools.values())
            self.pools.clear()
        for client in clients:
            client.close()


def _tls(verify: Any, cert: Any) -> dict[str, Any]:
    if not verify:
        options: dict[str, Any] = {"verify": False}
    elif verify is True:
        options = {}
    elif os.path.exists(verify):
        options = {"verify": verify}
    else:
        raise OSError(f"Could not find a suitable TLS CA certificate bundle, invalid path: {verify!s}")
    if cert:
        chain, key = (cert, None) if isinstance(cert, (str, bytes, os.PathLike)) else cert
        if not os.path.exists(chain):
            raise OSError(f"Could not find the TLS certificate file, invalid path: {chain!s}")
        if key is not None and not os.path.exists(key):
            raise OSError(f"Could not find the TLS key file, invalid path: {key!s}")
        options["cert"] = chain if key is None else (chain, key)
    return options


@functools.lru_cache(maxsize=64)
def _timeout(connect: float | None, read: float | None) -> mimus.Timeout:
    return mimus.Timeout(None, connect=connect, read=read, write=read)


def _limits(timeout: Any) -> mimus.Timeout | None:
    """What `timeout` of a request says. Raises `ValueError`."""
    if timeout is None:
        return None
    if isinstance(timeout, tuple):
        try:
            connect, read = timeout
        except ValueError:
            raise ValueError(f"timeout {timeout!r} must be a number, or a pair of them: (connect, read)") from None
    elif hasattr(timeout, "connect_timeout"):
        connect, read = _of_urllib3(timeout)
    else:
        connect = read = timeout
    for limit in (connect, read):
        if limit is None:
            continue
        if isinstance(limit, bool) or not isinstance(limit, (int, float)):
            raise ValueError(f"timeout {limit!r} must be an int, float or None")
        if limit <= 0:
            raise ValueError(f"timeout {limit!r} must be more than 0; None is without end")
    return _timeout(connect, read)


def _of_urllib3(timeout: Any) -> tuple[float | None, float | None]:
    """The parts of urllib3's `Timeout`, in which what is not set is an object of its own."""
    connect, read, total = timeout.connect_timeout, getattr(timeout, "_read", None), timeout.total
    limits = [limit for limit in (read, total) if isinstance(limit, (int, float)) and limit > 0]
    return connect if isinstance(connect, (int, float)) else None, min(limits, default=None)


class BaseAdapter:
    """What a session can mount."""

    def send(
        self,
        request: Any,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> Response:
        """Sends a `PreparedRequest`; the arguments are those of `Session.request`."""
        raise NotImplementedError

    def close(self) -> None:
        """Frees what it holds."""
        raise NotImplementedError


class HTTPAdapter(BaseAdapter):
    """Sends over HTTP/1.1 and HTTP/2, and keeps connections.

    Args:
        pool_connections: Known to requests, and without effect: connections to any number of hosts are kept.
        pool_maxsize: The most idle connections that are kept to a host.
        max_retries: How often to send again where there was no connection: a number, or a `Retry` with rules of its
            own, urllib3's as well. Mimus itself sends again what the server has surely not served.
        pool_block: Whether `pool_maxsize` is also the most connections to a host at a time.
        options: Any others are `mimus.Client`'s: `profile`, `http_version`, `resolve`, `unix_socket`...
    """

    __attrs__: ClassVar[list[str]] = ["max_retries", "config", "_pool_connections", "_pool_maxsize", "_pool_block", "_options"]

    def __init__(
        self,
        pool_connections: int = DEFAULT_POOLSIZE,
        pool_maxsize: int = DEFAULT_POOLSIZE,
        max_retries: Any = DEFAULT_RETRIES,
        pool_block: bool = DEFAULT_POOLBLOCK,
        **options: Any,
    ) -> None:
        self.max_retries: Retry | Any = _retry.NONE if max_retries == DEFAULT_RETRIES else Retry.from_int(max_retries)
        self.config: dict[str, Any] = {}
        self.proxy_manager: dict[str, Any] = {}
        self._pool_connections = pool_connections
        self._pool_maxsize = pool_maxsize
        self._pool_block = pool_block
        self._options = options
        self.init_poolmanager(pool_connections, pool_maxsize, block=pool_block, **options)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name, None) for name in self.__attrs__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.proxy_manager = {}
        self.config = {}
        for name, value in state.items():
            setattr(self, name, value)
        self.init_poolmanager(self._pool_connections, self._pool_maxsize, block=self._pool_block, **self._options)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **pool_kwargs: Any) -> None:
        """Sets `poolmanager`. `pool_kwargs` are `mimus.Client`'s arguments, and not urllib3's such as `ssl_context`."""
        most = maxsize if block and maxsize else None
        limits = mimus.Limits(max_connections_per_host=most, max_idle_per_host=maxsize)
        self._pool_kwargs = {"limits": limits, **pool_kwargs}
        self.poolmanager: PoolManager = PoolManager(**self._pool_kwargs)

    def proxy_manager_for(self, proxy: str, **proxy_kwargs: Any) -> Any:
        """The pools behind a proxy."""
        if proxy not in self.proxy_manager:
            self.proxy_manager[proxy] = PoolManager(proxy, **{**self._pool_kwargs, **proxy_kwargs})
        return self.proxy_manager[proxy]

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Raises `OSError` for files of certificates that are not there, if the URL is one of https."""
        if url[:5].lower() == "https":
            _tls(verify, cert)

    def build_response(self, req: Any, resp: Any) -> Response:
        """The answer `resp`, a `Response.raw`, to `req`."""
        response = Response()
        response.status_code = getattr(resp, "status", None)
        headers = CaseInsensitiveDict()
        headers.update(getattr(resp, "headers", {}))
        response.headers = headers
        response.encoding = get_encoding_from_headers(headers)
        response.raw = resp
        response.reason = getattr(resp, "reason", None)
        response.url = req.url if isinstance(req.url, str) else req.url.decode("utf-8")
        if "set-cookie" in headers:
            extract_cookies_to_jar(response.cookies, req, resp)
        response.request = req
        response.connection = self
        return response

    def build_connection_pool_key_attributes(
        self, request: Any, verify: Any, cert: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The host that a request goes to, and how to do TLS with it."""
        parts = urlsplit(request.url)
        host = {"scheme": parts.scheme.lower(), "host": parts.hostname, "port": parts.port}
        return host, {"verify": verify, "cert": cert}

    def get_connection_with_tls_context(
        self, request: Any, verify: Any, proxies: Mapping[str, str] | None = None, cert: Any = None
    ) -> mimus.Client:
        """The native client for a request. Raises `InvalidProxyURL`, and `OSError` as `cert_verify` does."""
        url: str = request.url
        return self._client(url, _proxy(url, proxies), verify, cert)

    def get_connection(self, url: str, proxies: Mapping[str, str] | None = None) -> mimus.Client:
        """The native client for a URL, which trusts known authorities only."""
        return self._client(url, _proxy(url, proxies), True, None)

    def _client(self, url: str, proxy: str | None, verify: Any, cert: Any) -> mimus.Client:
        manager = self.poolmanager if proxy is None else self.proxy_manager_for(proxy)
        if url[:5].lower() == "https" or (proxy is not None and proxy.startswith("https")):
            return manager.pool_for(verify, cert)
        return manager.plain_pool()

    def close(self) -> None:
        """Closes all connections."""
        self.poolmanager.clear()
        for proxy in self.proxy_manager.values():
            proxy.clear()

    def request_url(self, request: Any, proxies: Mapping[str, str] | None) -> str:
        """What a request asks for: the path and query, or of a proxy that forwards the whole URL."""
        proxy = _proxy(request.url, proxies)
        if proxy is None or proxy.startswith("socks") or urlsplit(request.url).scheme == "https":
            return str(request.path_url)
        return urldefragauth(request.url)

    def add_headers(self, request: Any, **kwargs: Any) -> None:
        """Called before a request is sent, for subclasses to change it; `kwargs` are those of `send`."""

    def proxy_headers(self, proxy: str) -> dict[str, str]:
        """What is said to a proxy: the name and password that its URL has."""
        username, password = get_auth_from_url(proxy)
        return {"Proxy-Authorization": _basic_auth_str(username, password)} if username else {}

    def send(
        self,
        request: Any,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> Response:
        """Sends a request.

        Raises:
            RequestException: It failed.
            OSError: A file of certificates is not there.
            ValueError: The timeout is none.
        """
        try:
            client = self.get_connection_with_tls_context(request, verify, proxies=proxies, cert=cert)
        except mimus.InvalidURL as refused:
            raise InvalidProxyURL(str(refused), request=request) from refused
        except mimus.Error as refused:
            raise SSLError(refused, request=request) from refused
        self.add_headers(request, stream=stream, timeout=timeout, verify=verify, cert=cert, proxies=proxies)
        arguments = _arguments(request, stream, timeout)
        raw = self._attempt(client, request, arguments, proxies)
        response = self.build_response(request, raw)
        if not stream:
            response._content = raw.native.content
            response._content_consumed = True
        return response

    def _attempt(self, client: mimus.Client, request: Any, arguments: dict[str, Any], proxies: Any) -> HTTPResponse:
        """Sends as often as `max_retries` lets it."""
        retries = self.max_retries
        while True:
            raw: HTTPResponse | None = None
            error: mimus.Error | None = None
            try:
                native = client.request(request.method, request.url, **arguments)
                raw = HTTPResponse(native, read=not arguments["stream"])
            except mimus.Error as failed:
                error = failed
            if raw is not None and (retries is _retry.NONE or not _asks_again(retries, request, raw)):
                return raw
            try:
                retries = _less(retries, request, raw, error, proxies)
            except _Enough as last:
                return last.raw
            retries.sleep(raw)
            if request._body_position is not None:
                rewind_body(request)
                arguments["content"] = _content(request)


class _Enough(Exception):
    """The last answer will do, as no retry is left."""

    def __init__(self, raw: HTTPResponse) -> None:
        self.raw = raw


def _proxy(url: str, proxies: Mapping[str, str] | None) -> str | None:
    """The proxy for a URL. Raises `InvalidProxyURL`."""
    proxy = select_proxy(url, proxies) if proxies else None
    if not proxy:
        return None
    try:
        proxy = prepend_scheme_if_needed(proxy, "http")
        host = parse_url(proxy).host
    except InvalidURL as error:
        raise InvalidProxyURL(*error.args) from None
    if not host:
        raise InvalidProxyURL(f"the proxy's URL {proxy!r} has no host")
    return proxy


def _arguments(request: Any, stream: bool, timeout: Any) -> dict[str, Any]:
    """What the native client is told."""
    headers = request.headers
    pairs = headers._store.values() if type(headers) is CaseInsensitiveDict else headers.items()
    arguments: dict[str, Any] = {
        "headers": [pair if type(pair[1]) is bytes or pair[1].isascii() else _bytes(pair) for pair in pairs],
        "timeout": _limits(timeout),
        "stream": stream,
    }
    if request.body is not None:
        arguments["content"] = _content(request)
    return arguments


def _content(request: Any) -> Any:
    body = request.body
    # The native client knows the length of more files than requests does, and would not send those in chunks.
    return _pieces(body) if "Transfer-Encoding" in request.headers and hasattr(body, "read") else body


def _pieces(file: Any) -> Iterator[Any]:
    while piece := file.read(_PIECE):
        yield piece


def _bytes(pair: tuple[str, Any]) -> tuple[str, bytes]:
    # Text beyond ASCII goes in ISO 8859-1, as http.client sends it; the native client's would be UTF-8.
    name, value = pair
    try:
        return name, value.encode("latin1") if isinstance(value, str) else bytes(value)
    except UnicodeEncodeError as error:
        raise InvalidHeader(f"header {name!r}: {error}") from error


def _asks_again(retries: Any, request: Any, raw: HTTPResponse) -> bool:
    return bool(retries.is_retry(request.method, raw.status, "retry-after" in raw.headers))


def _less(retries: Any, request: Any, raw: HTTPResponse | None, error: mimus.Error | None, proxies: Any) -> Any:
    """The retries that are left after an attempt. Raises what to raise, or `_Enough`, if there is none."""
    cause = None if error is None else _retry.theirs(retries, error)
    try:
        left = retries.increment(request.method, request.url, response=raw, error=cause, _pool=None)
    except Exception as spent:
        if error is not None:
            raise send_error(error, request, _proxy(request.url, proxies) is not None) from error
        if raw is not None and not retries.raise_on_status:
            raise _Enough(raw) from None
        raise RetryError(spent, request=request) from spent
    if raw is not None:
        raw.drain_conn()
    return left


__all__ = ["BaseAdapter", "HTTPAdapter", "MaxRetryError", "PoolManager", "ResponseError", "Retry"]
