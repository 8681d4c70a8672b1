"""Virtual environments of their own: the package as built, and beside it what a suite of others needs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from harness.servers import Broken, Server, Unavailable

REPOSITORY = Path(__file__).resolve().parents[3]
BUILT = ("lib_mimus.so", "lib_mimus.dylib")
OLDEST = (3, 11)
INSTALL = 600
"""Seconds that an installation may take."""


class Suite(Server):
    """A suite of tests from a package's source distribution, and an environment to run it in.

    It is no server: it is made once, kept below `target/tools`, and never runs by itself. Without a `distribution` it
    is the environment alone.
    """

    distribution = ""
    sha256 = ""
    requirements: tuple[str, ...] = ()

    def start(self) -> None:
        if sys.version_info < OLDEST:
            raise Unavailable(f"Python {sys.version.split()[0]} is older than {'.'.join(map(str, OLDEST))}")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.package = self._staged()
        wanted = "\n".join((self.distribution, self.sha256, *self.requirements, sys.version))
        home = self.lab.tools.parent / "python" / self.name
        self.python, self.source = home / "venv" / "bin" / "python", home / "source"
        marker = home / "complete"
        if not marker.exists() or marker.read_text() != wanted:
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir(parents=True)
            self._install(home)
            marker.write_text(wanted)

    def _staged(self) -> Path | None:
        """A folder with the package in it, the extension among its modules; `None` where nothing of ours is tested."""
        if self.lab.client.is_curl:
            return None
        beside = Path(self.lab.client.program).parent
        named = os.environ.get("MIMUS_PYTHON")
        places = [Path(named)] if named else [beside / name for name in BUILT]
        built = next((place for place in places if place.exists()), None)
        if built is None:
            raise Unavailable(f"the extension is not built: {places[0]} (cargo build -p mimus-python --features abi3)")
        package = self.folder / "package"
        left_out = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(REPOSITORY / "python" / "mimus", package / "mimus", ignore=left_out)
        shutil.copy(built, package / "mimus" / "_mimus.abi3.so")
        return package

    def _install(self, home: Path) -> None:
        self._run([sys.executable, "-m", "venv", str(home / "venv")])
        pip = [str(self.python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        self._run([*pip, "install", *self.requirements])
        if self.distribution:
            self._unpack(home, pip)

    def _unpack(self, home: Path, pip: list[str]) -> None:
        pinned = home / "pinned.txt"
        pinned.write_text(f"{self.distribution} --hash=sha256:{self.sha256}\n")
        self._run([*pip, "download", "--no-binary", ":all:", "--no-deps", "--require-hashes", "-r", str(pinned),
                   "--dest", str(home)])  # fmt: skip
        (archive,) = home.glob("*.tar.gz")
        if hashlib.sha256(archive.read_bytes()).hexdigest() != self.sha256:
            raise Broken(f"{archive.name} is another than it was")
        with tarfile.open(archive) as opened:
            opened.extractall(home / "unpacked", filter="data")
        (root,) = (home / "unpacked").iterdir()
        root.rename(self.source)

    def _run(self, command: list[str]) -> None:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{self.name}: {error}") from None
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no reason"])[-1]
            raise Unavailable(f"{self.name} cannot be installed: {last}")

    def stop(self) -> None:
        """Nothing runs."""


class PsfRequests(Suite):
    """psf/requests' own suite."""

    name = "psf-requests"
    distribution = "requests==2.34.2"
    sha256 = "f288924cae4e29463698d6d60bc6a4da69c89185ad1e0bcc4104f584e960b9ed"
    requirements = (
        "pytest==9.2.0",
        "pytest-httpbin==2.1.0",
        "httpbin==0.10.4",
        "trustme==1.2.1",
        "pytest-mock==3.17.0",
        "requests[socks]==2.34.2",
        "urllib3==2.8.0",
    )


SERVERS: list[type[Server]] = [PsfRequests]
