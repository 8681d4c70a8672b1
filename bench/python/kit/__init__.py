"""What every measured client in Python shares, so that only the client itself differs.

It speaks the protocol of the kit in Rust (`bench/kit`): the jobs it is given, the loop that makes the
exchanges, the clocks and counters around them. An adapter (`adapters/<name>.py`) holds what makes one
exchange with one client, and says so in a `Client` called `CLIENT`.
"""

from kit.peer import AsyncPeer, Client, Config, Peer, Setup

__all__ = ["AsyncPeer", "Client", "Config", "Peer", "Setup"]
