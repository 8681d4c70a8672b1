"""Addresses and networks of IPv4, as `no_proxy` has them."""

from __future__ import annotations

import socket

_BITS = 32


def _number(address: str) -> int:
    return int.from_bytes(socket.inet_aton(address), "big")


def _mask(bits: int) -> int:
    return (1 << _BITS) - (1 << (_BITS - bits))


def address_in_network(ip: str, net: str) -> bool:
    """Whether the address is in a network such as `192.168.1.0/24`."""
    network, _, bits = net.partition("/")
    mask = _mask(int(bits))
    return _number(ip) & mask == _number(network) & mask


def dotted_netmask(mask: int) -> str:
    """The mask of so many bits: `255.255.255.0` of 24."""
    return socket.inet_ntoa(_mask(mask).to_bytes(4, "big"))


def is_ipv4_address(string_ip: str) -> bool:
    """Whether it is an address of IPv4."""
    try:
        socket.inet_aton(string_ip)
    except OSError:
        return False
    return True


def is_valid_cidr(string_network: str) -> bool:
    """Whether it is a network such as `192.168.1.0/24`."""
    network, slash, bits = string_network.partition("/")
    return bool(slash) and bits.isdecimal() and 1 <= int(bits) <= _BITS and is_ipv4_address(network)
