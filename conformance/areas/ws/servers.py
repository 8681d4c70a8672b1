"""The servers of WebSocket: Autobahn's fuzzing server, echo servers by other people, and HAProxy, which
brings them to HTTP/2; and where the driver is."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from harness.checks import Failed, Skipped
from harness.servers import Server, Unavailable, find, free_port, go_program

DRIVER = "mimus-conformance-ws"
CONFORMANCE = Path(__file__).resolve().parents[2]
PEERS = CONFORMANCE / "peers"

HANG = 60
"""Seconds after which a run of the driver is a failure, unless it says otherwise."""


def drive(lab, *words: str | Path, hang: int = HANG) -> str:
    """Runs the driver, which must succeed: what it said."""
    if lab.client.is_curl:
        raise Skipped("curl is no client of WebSocket's conformance tests")
    try:
        program = find(os.environ.get("MIMUS_WS") or DRIVER, Path(lab.client.program).parent)
    except Unavailable as absent:
        raise Skipped(str(absent)) from None
    command = [program, *map(str, words)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=hang,
            env=lab.client.environment(None),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Failed(f"still running after {hang} s") from None
    if done.returncode != 0:
        raise Failed(f"exit code {done.returncode}: {(done.stdout + done.stderr).strip()[-300:]}")
    return done.stdout.strip()


class Fuzzing(Server):
    """Autobahn's fuzzing server with some of its cases."""

    cases: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def prepare(self) -> list[str]:
        program = find("wstest", self.lab.tools.parent / "autobahn" / "bin")
        self.port = free_port()
        self.ports = [self.port]
        spec = {
            "url": f"ws://127.0.0.1:{self.port}",
            "outdir": str(self.folder / "reports"),
            "cases": list(self.cases),
            "exclude-cases": list(self.left_out),
            "exclude-agent-cases": {},
        }
        (self.folder / "spec.json").write_text(json.dumps(spec))
        return [program, "-m", "fuzzingserver", "-s", "spec.json", "-u", "0"]

    def report(self, agent: str) -> dict[str, dict[str, str]]:
        """What it found of a client, by case."""
        return json.loads((self.folder / "reports" / "index.json").read_text())[agent]


class FuzzingFrames(Fuzzing):
    """Frames, fragments, UTF-8, closing: all but what is large."""

    name = "autobahn"
    cases = ("1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "10.*")


class FuzzingLarge(Fuzzing):
    """Messages of up to 16 MiB, whole and in pieces."""

    name = "autobahn-large"
    cases = ("9.*",)


class FuzzingSomeDeflate(Fuzzing):
    """Of each kind of compressed message, the small ones."""

    name = "autobahn-some-deflate"
    cases = tuple(f"{kind}.{n}" for kind in ("12.1", "12.3", "13.1", "13.3", "13.5", "13.7") for n in (1, 3))


class FuzzingDeflate(Fuzzing):
    """Every case of permessage-deflate."""

    name = "autobahn-deflate"
    cases = ("12.*", "13.*")


class Echo(Server):
    """A server that says back what it is told, without TLS and with."""

    def prepare(self) -> list[str]:
        self.plain, self.secure = free_port(), free_port()
        self.ports = [self.plain, self.secure]
        return self.command([str(self.plain), str(self.secure), str(self.lab.pki.server.cert), str(self.lab.pki.server.key)])

    def command(self, words: list[str]) -> list[str]:
        """The command, given both ports, the certificate and its key."""
        raise NotImplementedError

    def url(self, secure: bool) -> str:
        return f"wss://localhost:{self.secure}/" if secure else f"ws://127.0.0.1:{self.plain}/"


class PythonWebsockets(Echo):
    """Python `websockets`; what is large comes back in fragments."""

    name = "websockets"

    def command(self, words: list[str]) -> list[str]:
        python = find("python", self.lab.tools.parent / "websockets" / "bin")
        if self.lab.tools.parent not in Path(python).parents:
            raise Unavailable("the Python package websockets is not installed")
        return [python, str(PEERS / "ws_websockets.py"), *words]


class NodeWs(Echo):
    """Node's `ws`; what is large comes back in fragments."""

    name = "node-ws"

    def command(self, words: list[str]) -> list[str]:
        modules = self.lab.tools.parent / "node_modules"
        if not (modules / "ws").is_dir():
            raise Unavailable("the npm package ws is not installed")
        # A script is resolved from where it lies.
        script = self.folder / "ws_node.cjs"
        script.write_text((PEERS / "ws_node.cjs").read_text())
        (self.folder / "node_modules").symlink_to(modules)
        return [find("node"), str(script), *words]


class GoWebsocket(Echo):
    """Go: coder/websocket at `/`, gorilla/websocket at `/gorilla`."""

    name = "go"
    source = CONFORMANCE / "go-ws"

    def command(self, words: list[str]) -> list[str]:
        return [go_program(self.lab, self.source), *words]


class Tungstenite(Echo):
    """tungstenite, in the driver's own binary."""

    name = "tungstenite"

    def command(self, words: list[str]) -> list[str]:
        program = find(os.environ.get("MIMUS_WS") or DRIVER, Path(self.lab.client.program).parent)
        plain, secure, cert, key = words
        return [program, "tungstenite", "--plain", f"127.0.0.1:{plain}", "--tls", f"127.0.0.1:{secure}",
                "--cert", cert, "--key", key]  # fmt: skip


class Haproxy(Server):
    """HAProxy: HTTP/2 with extended CONNECT (RFC 8441) in front, servers of HTTP/1.1 behind.

    Autobahn wants its own port in Host, so HAProxy writes it.
    """

    name = "haproxy"
    behind = (FuzzingFrames, FuzzingLarge, FuzzingSomeDeflate, FuzzingDeflate, PythonWebsockets)

    def prepare(self) -> list[str]:
        program = find("haproxy")
        self.front: dict[str, tuple[int, int]] = {}
        pair = self.lab.pki.server
        # It wants the certificate and its key in one file.
        both = self.folder / "both.pem"
        both.write_text(pair.cert.read_text() + pair.key.read_text())
        parts = []
        for kind in self.behind:
            server = self.lab.running(kind.name)
            if server is None:
                continue
            port = server.plain if isinstance(server, Echo) else server.port
            plain, secure = free_port(), free_port()
            self.front[kind.name] = (plain, secure)
            self.ports += [plain, secure]
            parts.append(f"""
frontend {kind.name}-h2
    bind 127.0.0.1:{plain} proto h2
    bind 127.0.0.1:{secure} ssl crt {both} alpn h2
    default_backend {kind.name}
backend {kind.name}
    http-request set-header Host 127.0.0.1:{port}
    server one 127.0.0.1:{port}
""")
        if not parts:
            raise Unavailable("HAProxy has no server to stand in front of")
        config = self.folder / "haproxy.cfg"
        config.write_text("""
global
    log stdout format raw local0 notice
defaults
    mode http
    timeout connect 10s
    timeout client 300s
    timeout server 300s
    timeout tunnel 300s
""" + "".join(parts))
        return [program, "-db", "-f", str(config)]

    def url(self, name: str, secure: bool = False) -> str:
        if name not in self.front:
            raise Skipped(f"{name} is not there to stand in front of")
        plain, port = self.front[name]
        return f"wss://localhost:{port}" if secure else f"ws://127.0.0.1:{plain}"


SERVERS: list[type[Server]] = [
    FuzzingFrames, FuzzingLarge, FuzzingSomeDeflate, FuzzingDeflate,
    PythonWebsockets, NodeWs, GoWebsocket, Tungstenite, Haproxy,
]  # fmt: skip
