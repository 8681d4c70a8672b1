"""Tests without servers: what answers requests in their place, and says afterwards what was asked.

    with mimus.testing.Router() as server:
        server.get("https://example.com/user").respond(json={"name": "wren"})
        assert mimus.get("https://example.com/user").json()["name"] == "wren"

Everything above the connection works as ever: redirects, cookies, credentials, retries, hooks, decoding, timeouts. A
`Router` answers all calls while it is entered, those of `mimus.requests` and of the transports for httpx too, or those
of a client that has it as its `transport`. In pytest it is the fixture `mimus_mock`.

A transport is any callable that is given a `Request` and returns a `Response`, or raises what a call would raise
(`mimus.ConnectError("refused")`). For `AsyncClient` it may be a coroutine function.
"""

from mimus._transport import Request, Response

from ._router import Route, Router, UnmatchedRequest
from ._transports import Exchange, MockTransport

__all__ = [
    "Exchange",
    "MockTransport",
    "Request",
    "Response",
    "Route",
    "Router",
    "UnmatchedRequest",
]
