"""Calls without a client of one's own: all of a process share one, which is made when it is first needed.

It keeps connections, and no cookies, which would be everybody's.
"""

from _thread import allocate_lock

from mimus._mimus import Client

_client = None
_making = allocate_lock()


def _shared():
    global _client
    if _client is None:
        with _making:
            if _client is None:
                _client = Client(cookies=False)
    return _client


def request(method, url, **options):
    """Makes a call of any method. Takes the arguments of `Client.request`."""
    return _shared().request(method, url, **options)


def get(url, **options):
    """GETs a URL. Takes the arguments of `Client.get`."""
    return _shared().get(url, **options)


def head(url, **options):
    """HEADs a URL. Takes the arguments of `Client.head`."""
    return _shared().head(url, **options)


def options(url, **options):
    """Asks for the options of a URL. Takes the arguments of `Client.options`."""
    return _shared().options(url, **options)


def post(url, **options):
    """POSTs to a URL. Takes the arguments of `Client.post`."""
    return _shared().post(url, **options)


def put(url, **options):
    """PUTs to a URL. Takes the arguments of `Client.put`."""
    return _shared().put(url, **options)


def patch(url, **options):
    """PATCHes a URL. Takes the arguments of `Client.patch`."""
    return _shared().patch(url, **options)


def delete(url, **options):
    """DELETEs a URL. Takes the arguments of `Client.delete`."""
    return _shared().delete(url, **options)
