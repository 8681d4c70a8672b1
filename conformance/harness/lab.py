"""The laboratory of one area: its folder, client, certificates and running servers."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from harness.checks import Failed, Skipped
from harness.client import Client
from harness.pki import Pki
from harness.servers import Broken, Server, Unavailable


class Lab:
    def __init__(self, area: str, root: Path, command: str, quick: bool = False) -> None:
        self.quick = quick
        self.tools = root / "tools" / "bin"
        self.folder = root / "conformance" / area
        shutil.rmtree(self.folder, ignore_errors=True)
        home = self.folder / "home"
        home.mkdir(parents=True)
        self.client = Client(command, home)
        self.pki = Pki(self.folder / "pki")
        self._servers: dict[str, Server] = {}
        self._absent: dict[str, Exception] = {}
        self._temporary: list[Path] = []

    def start(self, kinds: list[type[Server]]) -> None:
        for kind in kinds:
            # Known before it starts, so that an interrupt in between stops it too.
            server = self._servers[kind.name] = kind(self)
            try:
                server.start()
            except (Unavailable, Broken) as error:
                self._absent[kind.name] = error

    def stop(self) -> None:
        for server in self._servers.values():
            server.stop()
        for folder in self._temporary:
            shutil.rmtree(folder, ignore_errors=True)

    def require(self, name: str) -> None:
        """Skips where the server is not installed, fails where it did not start."""
        absent = self._absent.get(name)
        if isinstance(absent, Unavailable):
            raise Skipped(str(absent))
        if absent is not None:
            raise Failed(str(absent))

    def server(self, name: str) -> Server:
        return self._servers[name]

    def running(self, name: str) -> Server | None:
        """The server, if it was started and is there."""
        return None if name in self._absent else self._servers.get(name)

    def scratch(self) -> Path:
        """A new folder with a short path, readable by a server that has dropped its rights."""
        folder = Path(tempfile.mkdtemp(prefix="mimus-"))
        folder.chmod(0o755)
        self._temporary.append(folder)
        return folder
