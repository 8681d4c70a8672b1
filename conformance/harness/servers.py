"""Servers: started on free loopback ports, waited for, and stopped whatever happens."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

START = 20.0
"""Seconds a server may take until it accepts."""

# Servers live in sbin, which is not on every user's path.
SEARCH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])


class Unavailable(Exception):
    """The server is not installed; its checks are skipped."""


class Broken(Exception):
    """The server is installed and did not start; its checks fail."""


_given: set[int] = set()


def free_port(host: str = "127.0.0.1") -> int:
    """A port nobody listens on, and that this run has not given away before."""
    while True:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.bind((host, 0))
            port = probe.getsockname()[1]
        if port not in _given:
            _given.add(port)
            return port


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False


def find(program: str, *folders: Path) -> str:
    path = shutil.which(program, path=os.pathsep.join([*map(str, folders), SEARCH]))
    if path is None:
        raise Unavailable(f"{program} is not installed")
    return path


def go_program(lab, source: Path) -> str:
    """The program that the Go module in `source` builds, named like its folder."""
    program = lab.tools / source.name
    done = subprocess.run(
        [find("go"), "build", "-o", str(program), "."],
        cwd=source,
        env=os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"},
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        # Debian 12's own Go is too old, and some modules come by the network.
        why = (done.stderr.strip().splitlines() or ["no reason"])[-1]
        raise Unavailable(f"{source.name} cannot be built (it needs Go 1.24): {why}")
    return str(program)


class Server:
    """One process. A subclass names it, and says in `prepare` what to run and which ports to await."""

    name = ""

    def __init__(self, lab) -> None:
        self.lab = lab
        self.folder: Path = lab.folder / self.name
        self.log = self.folder / "output.log"
        self.ports: list[int] = []
        self.process: subprocess.Popen | None = None

    def prepare(self) -> list[str]:
        """Writes the configuration, fills `ports`, and returns the command."""
        raise NotImplementedError

    def start(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        command = self.prepare()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,
            )
        for port in self.ports:
            self._await(port)

    def _await(self, port: int) -> None:
        until = time.monotonic() + START
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise Broken(f"{self.name} ended at once: {self._last_words()}")
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise Broken(f"{self.name} does not accept on port {port}: {self._last_words()}")

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "no output"

    def stop(self) -> None:
        """Ends the process and what it forked: they share its session."""
        if self.process is None:
            return
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, sign)
                self.process.wait(timeout=3)
            except ProcessLookupError:
                return
            except subprocess.TimeoutExpired:
                continue
        # What it forked is killed too, and may take a moment to be gone. Who reaps it is not us.
        until = time.monotonic() + 1
        while time.monotonic() < until:
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.005)

    def said(self) -> str:
        """What the server has written so far."""
        return self.log.read_text(errors="replace")
