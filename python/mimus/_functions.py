"""Calls without a client of one's own: all of a process share one, which is made when it is first needed.

It keeps connections, and no cookies, which would be everybody's.
"""

from _thread import allocate_lock

from mimus._mimus import Client

# For annotations alone: `typing` takes longer to load than all of the package. Type checkers go by the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Unpack

    from mimus._mimus import EventSource, Response, WebSocket
    from mimus.types import URL, EventOptions, RequestOptions, WebSocketOptions

_client: Client | None = None
_making = allocate_lock()


def _shared() -> Client:
    global _client
    if _client is None:
        with _making:
            if _client is None:
                _client = Client(cookies=False)
    return _client


def request(method: str, url: "URL", **options: "Unpack[RequestOptions]") -> "Response":
    """Makes a call of any method. Takes the arguments of `Client.request`."""
    return _shared().request(method, url, **options)


def get(url: "URL", **options: "Unpack[RequestOptions]") -> "Response":
    """GETs a URL. Takes the arguments of `Client.get`."""
    return _shared().get(url, **options)


def head(url: "URL", **options: "Unpack[RequestOptions]") -> "Response":
    """HEADs a URL. Takes the arguments of `Client.head`."""
    return _shared().head(url, **options)


def options(url: "URL", **options: "Unpack[RequestOptions]") -> "Response":
    """Asks for the options of a URL. Takes the arguments of `Client.options`."""
    return _shared().options(url, **options)


def post(url: "URL", **options: "Unpack[RequestOptions]") -> "Response":
    """POSTs to a URL. Takes the arguments of `Client.post`."""
    return _shared().post(url, **options)


def put(url: "URL", **options: "Unpack[RequestOptions]") -> "Response":
    """PUTs to a URL. Takes the arguments of `Client.put`."""
    return _shared().put(url, **options)


def patch(url: "URL", **options: "Unpack[RequestOptions]") -> "Response":
    """PATCHes a URL. Takes the arguments of `Client.patch`."""
    return _shared().patch(url, **options)


def delete(url: "URL", **options: "Unpack[RequestOptions]") -> "Response":
    """DELETEs a URL. Takes the arguments of `Client.delete`."""
    return _shared().delete(url, **options)


def websocket(url: "URL", **options: "Unpack[WebSocketOptions]") -> "WebSocket":
    """Opens a WebSocket. Takes the arguments of `Client.websocket`."""
    return _shared().websocket(url, **options)


def sse(url: "URL", **options: "Unpack[EventOptions]") -> "EventSource":
    """The events of a source. Takes the arguments of `Client.sse`."""
    return _shared().sse(url, **options)
