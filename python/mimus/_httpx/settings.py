"""From the arguments that httpx's own transports have to those of Mimus's clients."""

import ssl
from typing import Any, Protocol, cast

import mimus
from mimus.types import Certificate, HttpVersion, Path, ProfileName, Proxies, Resolve, UrlLike, Verify


class ForeignLimits(Protocol):
    """What is asked of httpx's `Limits`."""

    max_connections: int | None
    max_keepalive_connections: int | None
    keepalive_expiry: float | None


class ForeignProxy(Protocol):
    """What is asked of httpx's `Proxy`."""

    url: Any
    auth: tuple[str, str] | None


def client_arguments(
    *,
    verify: Verify,
    cert: Certificate | None,
    trust_env: bool,
    http1: bool,
    http2: bool,
    limits: mimus.Limits | ForeignLimits | None,
    proxy: Proxies | UrlLike | ForeignProxy | None,
    uds: Path | None,
    local_address: str | None,
    retries: int | mimus.Retry,
    profile: ProfileName | None,
    resolve: Resolve | None,
) -> dict[str, Any]:
    """The keyword arguments of a client that is a transport and nothing else."""
    return {
        "verify": _verify(verify),
        "cert": cert,
        "trust_env": trust_env,
        "http_version": _http_version(http1, http2),
        "limits": _limits(limits),
        "proxy": _proxy(proxy),
        "unix_socket": uds,
        "local_address": local_address,
        "retries": _retries(retries),
        "profile": profile,
        "resolve": resolve,
        # All of this is httpx's business.
        "auth": None,
        "cookies": False,
        "decode": False,
        "default_headers": False,
        "follow_redirects": False,
        "timeout": None,
    }


def _verify(verify: Verify) -> Verify:
    if isinstance(verify, ssl.SSLContext):
        raise TypeError(
            "verify must be True, False, a path, or certificates in PEM as bytes: "
            "an ssl.SSLContext is of Python's own TLS, which Mimus does not use"
        )
    return verify


def _http_version(http1: bool, http2: bool) -> HttpVersion | None:
    if http1 and http2:
        return None
    if http1:
        return "1.1"
    if http2:
        return "2"
    raise ValueError("with neither http1 nor http2 nothing can be asked")


def _limits(limits: mimus.Limits | ForeignLimits | None) -> mimus.Limits | None:
    """Takes `mimus.Limits` as it is, and httpx's by what it has."""
    if limits is None or isinstance(limits, mimus.Limits):
        return limits
    return mimus.Limits(
        max_connections=limits.max_connections,
        max_idle_per_host=limits.max_keepalive_connections,
        idle_timeout=limits.keepalive_expiry,
    )


def _proxy(proxy: Proxies | UrlLike | ForeignProxy | None) -> Proxies | None:
    """Takes what `mimus.Client` takes, and httpx's `URL` and `Proxy` by what they have."""
    if proxy is None or isinstance(proxy, (str, bool, dict)):
        return cast("Proxies | None", proxy)
    if getattr(proxy, "ssl_context", None) is not None:
        raise TypeError("a proxy's ssl_context is of Python's own TLS, which Mimus does not use")
    if getattr(proxy, "headers", None):
        raise TypeError("a proxy's headers cannot be chosen: give credentials in its URL")
    url: Any = getattr(proxy, "url", proxy)
    auth = getattr(proxy, "auth", None)
    if auth is not None:
        url = url.copy_with(username=auth[0], password=auth[1])
    # The text of a URL of httpx, unlike its repr, has the password.
    return str(url)


def _retries(retries: int | mimus.Retry) -> int | mimus.Retry | None:
    """A number is of retries where no connection could be made, as httpx has it."""
    if isinstance(retries, mimus.Retry) or not retries:
        return retries or None
    return mimus.Retry(retries, statuses=[], methods=[], on_connect=True, backoff=0.5)
