"""The servers: the bytes of the Web Platform Tests' cases, and a source by another's library."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.servers import Server, free_port, go_program

HERE = Path(__file__).resolve().parent


class Replay(Server):
    """Sends the bytes of one case of `wpt.json`, in pieces of a size that the path names."""

    name = "replay"

    def prepare(self) -> list[str]:
        self.port = free_port()
        self.ports = [self.port]
        return [sys.executable, str(HERE / "replay.py"), str(self.port)]

    def url(self, kind: str, number: int, piece: int = 0) -> str:
        return f"http://127.0.0.1:{self.port}/{kind}/{number}/{piece}"


class GoSse(Server):
    """A source by github.com/tmaxmax/go-sse, which keeps its events and replays them."""

    name = "go-sse"
    code = HERE.parents[1] / "go-sse"

    def prepare(self) -> list[str]:
        program = go_program(self.lab, self.code)
        self.plain, self.secure = free_port(), free_port()
        self.ports = [self.plain, self.secure]
        pair = self.lab.pki.server
        return [program, "-plain", f"127.0.0.1:{self.plain}", "-tls", f"127.0.0.1:{self.secure}",
                "-cert", str(pair.cert), "-key", str(pair.key)]  # fmt: skip

    def ask(self, way: str, path: str) -> list[str]:
        """The arguments that ask for `path` by HTTP/1.1, by h2c, or by HTTP/2 over TLS."""
        match way:
            case "h1":
                return [f"http://127.0.0.1:{self.plain}{path}"]
            case "h2c":
                return ["--http2-prior-knowledge", f"http://127.0.0.1:{self.plain}{path}"]
            case _:
                trust = ["--cacert", str(self.lab.pki.ca.cert)]
                return [*trust, "--http2", f"https://127.0.0.1:{self.secure}{path}"]


SERVERS: list[type[Server]] = [Replay, GoSse]
