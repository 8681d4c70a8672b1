"""Functions for one request each, in a session of its own."""

from __future__ import annotations

from typing import Any

from . import sessions
from .models import Response


def request(method: str, url: Any, **kwargs: Any) -> Response:
    """Sends a request; the arguments are those of `Session.request`."""
    with sessions.Session() as session:
        response: Response = session.request(method=method, url=url, **kwargs)
        return response


def get(url: Any, params: Any = None, **kwargs: Any) -> Response:
    """Sends a GET request."""
    return request("get", url, params=params, **kwargs)


def options(url: Any, **kwargs: Any) -> Response:
    """Sends an OPTIONS request."""
    return request("options", url, **kwargs)


def head(url: Any, **kwargs: Any) -> Response:
    """Sends a HEAD request. It follows redirects only if `allow_redirects` says so."""
    kwargs.setdefault("allow_redirects", False)
    return request("head", url, **kwargs)


def post(url: Any, data: Any = None, json: Any = None, **kwargs: Any) -> Response:
    """Sends a POST request."""
    return request("post", url, data=data, json=json, **kwargs)


def put(url: Any, data: Any = None, **kwargs: Any) -> Response:
    """Sends a PUT request."""
    return request("put", url, data=data, **kwargs)


def patch(url: Any, data: Any = None, **kwargs: Any) -> Response:
    """Sends a PATCH request."""
    return request("patch", url, data=data, **kwargs)


def delete(url: Any, **kwargs: Any) -> Response:
    """Sends a DELETE request."""
    return request("delete", url, **kwargs)
