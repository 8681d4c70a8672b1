"""The blocking client as if it were awaited, so that a test of both is written once."""

import mimus


class Blocking:
    """A `Client` that is entered as an `AsyncClient` is. What is awaited of it, its subclasses say."""

    def __init__(self, **options):
        self.client = mimus.Client(**options)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        self.client.close()
