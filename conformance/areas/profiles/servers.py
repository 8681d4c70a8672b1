"""The recorder: Go's TLS and HTTP, and all bytes that come to them."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from harness.checks import Failed
from harness.servers import START, Broken, Server, free_port, go_program

from areas.profiles.facts import BUILDS, HERE
from areas.profiles.hello import Hello

# Hosts are in what is compared, ports too. So they are those of the captures, at addresses of the loopback
# network that nobody else uses.
H2, H1 = "127.6.0.1", "127.6.0.2"
AWAY = "/30ms"
"""How long handshakes take at the recorder's other addresses: where they take no time, what a browser does meanwhile, as
with a server that is far away, is chance."""

WAIT = 20.0
"""Seconds until the record of a connection that was closed must be there."""


@dataclass(frozen=True)
class Record:
    """One connection."""

    listener: str
    hello: Hello
    raw: bytes
    app: bytes
    resumed: bool


def authorities() -> dict[str, set[int]]:
    """The ports that captured requests went to, by the kind of listener."""
    ports: dict[str, set[int]] = {"h2": set(), "h1": set(), "plain": set()}
    for build in BUILDS:
        for name, asked in build.http.items():
            if isinstance(asked, dict):
                ports["h2"].add(port_of(dict(asked["headers"])[":authority"]))
            else:
                host = next(line for line in asked if line.startswith("Host: "))
                ports["plain" if name == "plain" else "h1"].add(port_of(host))
    return ports


def port_of(authority: str) -> int:
    return int(authority.rpartition(":")[2])


class Recorder(Server):
    name = "go-capture"
    code = HERE.parents[1] / "go-capture"

    def prepare(self) -> list[str]:
        program = go_program(self.lab, self.code)
        self.pair = self.lab.pki.issue("capture", "DNS:a.test,DNS:b.test,DNS:localhost,IP:127.0.0.1")
        self.port = {"h2": free_port(), "h1": free_port(), "plain": free_port()}
        self.records = self.folder / "records"
        self.records.mkdir()
        self.taken = 0
        ports = authorities()
        listen = [f"h2={H2}:{port}" for port in ports["h2"]]
        listen += [f"h1={H1}:{port}" for port in ports["h1"]]
        listen += [f"plain={H1}:{port}" for port in ports["plain"]]
        listen += [f"{kind}=127.0.0.1:{port}{'' if kind == 'plain' else AWAY}" for kind, port in self.port.items()]
        flags = [part for each in listen for part in ("-listen", each)]
        return [program, "-cert", str(self.pair.cert), "-key", str(self.pair.key), "-folder", str(self.records), *flags]

    def start(self) -> None:
        super().start()
        until = time.monotonic() + START
        while "listening" not in self.said():
            if self.process.poll() is not None or time.monotonic() > until:
                raise Broken(f"{self.name} does not listen: {self._last_words()}")
            time.sleep(0.02)

    def trust(self) -> list[str]:
        return ["--cacert", str(self.lab.pki.ca.cert)]

    def take(self, count: int) -> list[Record]:
        """The next connections, once they have ended."""
        paths = [self.records / f"{self.taken + at + 1:06}.json" for at in range(count)]
        until = time.monotonic() + WAIT
        for path in paths:
            while not path.exists():
                if time.monotonic() > until:
                    raise Failed(f"{count} connections were to end, and did not in {WAIT:.0f} s")
                time.sleep(0.005)
        self.taken += count
        return [record(path) for path in paths]

    def asked(self, count: int) -> list[Record]:
        """The next connections that something was sent on, once they have ended: browsers open others too."""
        found: list[Record] = []
        while len(found) < count:
            found += [record for record in self.take(1) if record.app]
        return found

    def rest(self) -> list[Record]:
        """Whatever else has ended."""
        count = 0
        while (self.records / f"{self.taken + count + 1:06}.json").exists():
            count += 1
        return self.take(count)


def record(path) -> Record:
    its = json.loads(path.read_text())
    raw = bytes.fromhex(its["hello"])
    hello = Hello.read(raw) if raw else None
    return Record(its["listener"], hello, raw, bytes.fromhex(its["app"]), its["resumed"])


SERVERS: list[type[Server]] = [Recorder]
