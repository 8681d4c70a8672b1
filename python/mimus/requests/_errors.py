"""From what Mimus raises to what requests does."""

from __future__ import annotations

import sys
from typing import Any

import mimus

from . import exceptions

# How the native client says that something came, but not enough.
_HALF_A_HEAD = "closed inside a head"


def send_error(error: Exception, request: Any, proxied: bool = False) -> Exception:
    """What to raise for `error`, because of which there is no answer to `request`. `proxied`: a proxy was asked."""
    if not isinstance(error, mimus.Error):
        return error
    kind, phase, text = error.kind, error.phase, str(error)
    if phase == "body":
        return body_error(error, request)
    new: exceptions.RequestException
    match kind:
        case "timeout":
            new = _timeout(error)
        case "resolve" | "connect":
            new = exceptions.ProxyError(error) if proxied else exceptions.ConnectionError(error)
        case "proxy":
            new = exceptions.ProxyError(error)
        case "tls" | "certificate":
            new = exceptions.SSLError(error)
        case "protocol" | "limit" if phase == "head":
            new = exceptions.BrokenAnswer(error)
        case "closed" if text.endswith(_HALF_A_HEAD):
            new = exceptions.BrokenAnswer(error)
        case "request" if isinstance(error, mimus.InvalidURL):
            new = exceptions.InvalidURL(text)
        case "request" if phase is None:
            new = exceptions.InvalidHeader(text)
        case "request":
            new = exceptions.RequestException(error)
        case "closed" | "io" | "reset" | "protocol" | "not-offered":
            new = exceptions.ConnectionError(error)
        case _:
            return body_error(error, request)
    new.request = request
    return new


def _timeout(error: mimus.Error) -> exceptions.RequestException:
    if isinstance(error, mimus.ConnectTimeout):
        return exceptions.ConnectTimeout(error)
    if isinstance(error, mimus.PoolTimeout):
        return exceptions.ConnectionError(error)
    if isinstance(error, mimus.ReadTimeout):
        return exceptions.ReadTimeout(TimeoutError(f"Read timed out: {error}"))
    return exceptions.Timeout(error)


def body_error(error: Exception, request: Any) -> Exception:
    """What to raise for `error`, because of which the answer to `request` has no body, or half of one."""
    if isinstance(error, mimus.Error):
        if isinstance(error, mimus.RequestTimeout):
            new: Exception = exceptions.ConnectionError(TimeoutError(f"Read timed out: {error}"))
        elif error.kind in ("decode", "limit"):
            new = exceptions.ContentDecodingError(error)
        elif error.kind in ("tls", "certificate"):
            new = exceptions.SSLError(error)
        else:
            new = exceptions.ChunkedEncodingError(error)
    else:
        new = _of_urllib3(error)
    if isinstance(new, exceptions.RequestException) and new.request is None:
        new.request = request
    return new


def _of_urllib3(error: Exception) -> Exception:
    """An adapter of the user's may be made of urllib3; who raises its exceptions has loaded it."""
    theirs: Any = sys.modules.get("urllib3.exceptions")
    if theirs is None:
        return error
    for kinds, ours in (
        (theirs.ReadTimeoutError, exceptions.ConnectionError),
        (theirs.ProtocolError, exceptions.ChunkedEncodingError),
        (theirs.DecodeError, exceptions.ContentDecodingError),
        (theirs.SSLError, exceptions.SSLError),
    ):
        if isinstance(error, kinds):
            return ours(error)
    return error
