"""Drives a command-line client: mimus, or curl as the known-good one, over the flags they share."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from harness.checks import Failed, brief, expect_eq

# What ends one transfer on standard output: status, connections opened for it, seconds.
MARK = "\n@@%{http_code} %{num_connects} %{time_total}\n"
MARKED = re.compile(rb"\n@@(\d+) (\d+) ([\d.]+)\n")

# A check that hangs is a failure with this reason, not a run that never ends.
HANG = 60.0

# Settings of whoever runs this must not reach the client.
CLEARED = re.compile(r"(?i).*_proxy|no_proxy|SSL_CERT_.*|SSLKEYLOGFILE|CURL_.*|MIMUS_.*|NETRC|XDG_.*")


@dataclass(frozen=True)
class Run:
    """One finished invocation."""

    argv: list[str]
    code: int
    out: bytes
    err: str
    seconds: float

    def expect_code(self, *codes: int) -> Run:
        if self.code not in codes:
            wanted = " or ".join(map(str, codes))
            raise Failed(f"exit code {self.code} instead of {wanted}{self.complaint()}")
        return self

    def expect_failure(self) -> Run:
        if self.code == 0:
            raise Failed("exit code 0, where it had to fail")
        return self

    def complaint(self) -> str:
        lines = [line for line in self.err.strip().splitlines() if line.strip()]
        return f" ({brief(lines[-1], 160)})" if lines else ""


@dataclass(frozen=True)
class Transfer:
    """One URL's result within an invocation."""

    body: bytes
    status: int
    connects: int
    seconds: float

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Failed(f"not JSON ({error}): {brief(self.body)}") from None

    def expect_status(self, status: int) -> Transfer:
        expect_eq("status", self.status, status)
        return self


class Client:
    def __init__(self, command: str, home: Path) -> None:
        path = Path(command)
        self.program = str(path.resolve()) if path.exists() else command
        self.home = home
        self.version = self._version()
        self.is_curl = self.version.startswith("curl ")

    def _version(self) -> str:
        try:
            done = subprocess.run([self.program, "--version"], capture_output=True, text=True, timeout=HANG)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SystemExit(f"conformance: cannot run the client: {error}") from None
        return (done.stdout.splitlines() or ["?"])[0]

    def method(self, name: str) -> list[str]:
        """The arguments, to come first, that choose the method: mimus has a subcommand for each."""
        return ["-X", name] if self.is_curl else [name.lower()]

    def environment(self, extra: dict[str, str] | None) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not CLEARED.fullmatch(k)}
        return kept | {"HOME": str(self.home), "NO_COLOR": "1"} | (extra or {})

    def run(
        self,
        *args: str | Path,
        stdin: bytes = b"",
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        hang: float = HANG,
    ) -> Run:
        """One invocation with exactly these arguments."""
        argv = [self.program, *map(str, args)]
        started = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=out, stderr=err, env=self.environment(env), cwd=cwd
            )
            try:
                process.communicate(stdin, timeout=hang)
            except subprocess.TimeoutExpired:
                raise Failed(f"still running after {hang:.0f} s") from None
            finally:
                process.kill()
                process.wait()
            seconds = time.monotonic() - started
            out.seek(0)
            err.seek(0)
            return Run(argv, process.returncode, out.read(), err.read().decode("utf-8", "replace"), seconds)

    def tell(self, *args: str | Path, **options) -> tuple[Run, list[Transfer]]:
        """An invocation that also reports on each of its transfers; any exit code."""
        run = self.run(*args, "-sS", "-w", MARK, **options)
        pieces = MARKED.split(run.out)
        found = [
            Transfer(body, int(status), int(connects), float(seconds))
            for body, status, connects, seconds in zip(*[iter(pieces[:-1])] * 4, strict=True)
        ]
        return run, found

    def many(self, *args: str | Path, count: int, **options) -> list[Transfer]:
        """An invocation that must succeed and make `count` transfers."""
        run, found = self.tell(*args, **options)
        run.expect_code(0)
        expect_eq("transfers reported by -w", len(found), count)
        return found

    def one(self, *args: str | Path, **options) -> Transfer:
        """An invocation that must succeed and make one transfer."""
        return self.many(*args, count=1, **options)[0]
