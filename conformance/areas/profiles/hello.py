"""A reader of ClientHellos (RFC 8446 section 4.1.2), sharing no code with Mimus.

`Hello.shape` is all that a server can see and that does not vary from connection to connection: GREASE is
named (RFC 8701), keys, tickets and random bytes are there by their length.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

GREASE = "GREASE"
NAME, GROUPS, FORMATS, ALGORITHMS, ALPN = 0, 10, 11, 13, 16
COMPRESSION, TICKET, PSK, VERSIONS, MODES, SHARES = 27, 35, 41, 43, 45, 51
ECH = 0xFE0D
ALPS = (17513, 17613)


def is_grease(number: int) -> bool:
    return number & 0x0F0F == 0x0A0A and number >> 8 == number & 0xFF


def named(number: int) -> int | str:
    return GREASE if is_grease(number) else number


class Reader:
    """Takes numbers and runs of bytes off the front."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, count: int) -> bytes:
        if count > len(self.data):
            raise ValueError("the ClientHello ends too early")
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def run(self, size: int) -> bytes:
        """What stands behind its length, which takes `size` bytes."""
        return self.take(self.number(size))


def numbers(data: bytes) -> list[int]:
    return [number for (number,) in struct.iter_unpack(">H", data)]


def handshake(raw: bytes) -> bytes:
    """The first handshake message of a connection, out of its records (RFC 8446 section 5.1)."""
    reader, found = Reader(raw), b""
    while len(found) < 4 or len(found) < 4 + int.from_bytes(found[1:4]):
        if reader.number(1) != 22:
            raise ValueError("not a handshake")
        reader.take(2)
        found += reader.run(2)
    if found[0] != 1:
        raise ValueError("not a ClientHello")
    return found[4 : 4 + int.from_bytes(found[1:4])]


@dataclass(frozen=True)
class Hello:
    record_version: int
    version: int
    session: int
    ciphers: list[int]
    extensions: list[tuple[int, bytes]]

    @classmethod
    def read(cls, raw: bytes) -> Hello:
        reader = Reader(handshake(raw))
        version = reader.number(2)
        reader.take(32)
        session = len(reader.run(1))
        ciphers = numbers(reader.run(2))
        if reader.run(1) != b"\0":
            raise ValueError("compression is offered")
        rest, extensions = Reader(reader.run(2)), []
        while rest.data:
            extensions.append((rest.number(2), rest.run(2)))
        return cls(int.from_bytes(raw[1:3]), version, session, ciphers, extensions)

    def extension(self, number: int) -> bytes | None:
        return next((data for its, data in self.extensions if its == number), None)

    def _run(self, number: int, size: int) -> bytes:
        data = self.extension(number)
        return b"" if data is None else Reader(data).run(size)

    @property
    def order(self) -> list[int | str]:
        """The extensions as they stand."""
        return [named(number) for number, _ in self.extensions]

    @property
    def alpn(self) -> list[str]:
        reader, found = Reader(self._run(ALPN, 2)), []
        while reader.data:
            found.append(reader.run(1).decode("latin-1"))
        return found

    @property
    def algorithms(self) -> list[int]:
        return numbers(self._run(ALGORITHMS, 2))

    @property
    def shares(self) -> list[tuple[int | str, int]]:
        reader, found = Reader(self._run(SHARES, 2)), []
        while reader.data:
            found.append((named(reader.number(2)), len(reader.run(2))))
        return found

    @property
    def ech(self) -> tuple[int, ...] | None:
        """KDF, AEAD, length of the key, length of the payload (RFC 9849 section 5)."""
        data = self.extension(ECH)
        if data is None:
            return None
        reader = Reader(data)
        if reader.number(1) != 0:
            raise ValueError("an inner ECH extension outside")
        kdf, aead, _ = reader.number(2), reader.number(2), reader.number(1)
        return kdf, aead, len(reader.run(2)), len(reader.run(2))

    def _value(self, number: int, data: bytes) -> object:
        if is_grease(number):
            return data.hex()
        match number:
            case 0:
                return "a name"
            case 10:
                return [named(each) for each in numbers(Reader(data).run(2))]
            case 13:
                return [named(each) for each in self.algorithms]
            case 43:
                return [named(each) for each in numbers(Reader(data).run(1))]
            case 51:
                return self.shares
            case 0xFE0D:
                # Of what varies within a browser there are sets.
                return "ECH"
            case 35:
                return "a ticket" if data else ""
            case 41:
                return "a session"
        return data.hex()

    @property
    def shape(self) -> dict[str, object]:
        """Everything but the order of the extensions."""
        values: dict[str, object] = {
            "record version": self.record_version,
            "version": self.version,
            "length of the session id": self.session,
            "cipher suites": [named(each) for each in self.ciphers],
            "extensions": sorted(map(str, self.order)),
        }
        grease = 0
        for number, data in self.extensions:
            name = f"extension {number}"
            if is_grease(number):
                grease += 1
                name = f"GREASE extension {grease}"
            values[name] = self._value(number, data)
        return values

    @property
    def ja3n(self) -> str:
        """JA3 with its extensions sorted."""
        plain = [n for n, _ in self.extensions if not is_grease(n)]
        parts = [
            [self.version],
            [n for n in self.ciphers if not is_grease(n)],
            sorted(plain),
            [n for n in numbers(self._run(GROUPS, 2)) if not is_grease(n)],
            list(self._run(FORMATS, 1)),
        ]
        return md5(",".join("-".join(map(str, part)) for part in parts))

    @property
    def ja4(self) -> str:
        plain = [n for n, _ in self.extensions if not is_grease(n)]
        ciphers = sorted(f"{n:04x}" for n in self.ciphers if not is_grease(n))
        hashed = sorted(f"{n:04x}" for n in plain if n not in (NAME, ALPN))
        algorithms = [f"{n:04x}" for n in self.algorithms if not is_grease(n)]
        versions = [n for n in numbers(self._run(VERSIONS, 1)) if not is_grease(n)] or [self.version]
        version = {0x304: "13", 0x303: "12", 0x302: "11", 0x301: "10"}.get(max(versions), "00")
        first = self.alpn[0] if self.alpn else "00"
        head = f"t{version}{'d' if NAME in plain else 'i'}{len(ciphers):02}{len(plain):02}{first[0]}{first[-1]}"
        tail = ",".join(hashed) + ("_" + ",".join(algorithms) if algorithms else "")
        return f"{head}_{short_sha(','.join(ciphers))}_{short_sha(tail)}"

    @property
    def peetprint(self) -> str:
        protocols = {"h2": "2", "http/1.1": "1.1", "http/1.0": "1.0", "h3": "3"}
        parts: list[list[object]] = [
            [named(n) for n in numbers(self._run(VERSIONS, 1))],
            [protocols.get(name, name) for name in self.alpn],
            [named(n) for n in numbers(self._run(GROUPS, 2))],
            [named(n) for n in self.algorithms],
            list(self._run(MODES, 1)),
            numbers(self._run(COMPRESSION, 1)),
            [named(n) for n in self.ciphers],
            sorted(map(str, self.order)),
        ]
        return md5("|".join("-".join(map(str, part)) for part in parts))


def md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def short_sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
