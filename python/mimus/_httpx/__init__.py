"""The transports of `mimus.httpx` and `mimus.httpx2`, which are one implementation.

It imports neither package: what it needs of one it takes from the module that a request comes from.
"""
