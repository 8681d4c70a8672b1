"""The servers: the bytes of the Web Platform Tests' cases, and a source by another's library."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from harness.servers import Server, Unavailable, find, free_port

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
        program = self._built()
        self.plain, self.secure = free_port(), free_port()
        self.ports = [self.plain, self.secure]
        pair = self.lab.pki.server
        return [program, "-plain", f"127.0.0.1:{self.plain}", "-tls", f"127.0.0.1:{self.secure}",
                "-cert", str(pair.cert), "-key", str(pair.key)]  # fmt: skip

    def _built(self) -> str:
        program = self.lab.tools / "go-sse"
        done = subprocess.run(
            [find("go"), "build", "-o", str(program), "."],
            cwd=self.code,
            env=os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"},
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            why = (done.stderr.strip().splitlines() or ["no reason"])[-1]
            raise Unavailable(f"go-sse cannot be built (it needs Go 1.24 and the network): {why}")
        return str(program)

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
