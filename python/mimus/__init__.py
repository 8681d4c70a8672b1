"""An HTTP client that speaks everything, at the price of the socket under it."""

from mimus._mimus import __version__

__all__ = ["__version__"]
