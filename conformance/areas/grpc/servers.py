"""The servers of gRPC: grpc-go's interop server, plain and over TLS; and where the drivers are."""

from __future__ import annotations

import os
from pathlib import Path

from harness.checks import Skipped
from harness.servers import Server, Unavailable, find, free_port

DRIVER = "mimus-conformance-grpc"


def driver(lab, known_good: str) -> str:
    """The program that makes the calls: Mimus's, beside its command line, or the known-good one."""
    if lab.client.is_curl:
        names, folders = known_good, [lab.tools]
    else:
        own = os.environ.get("MIMUS_GRPC")
        names, folders = (own or DRIVER), [Path(lab.client.program).parent]
    try:
        return find(names, *folders)
    except Unavailable as absent:
        raise Skipped(str(absent)) from None


class Interop(Server):
    """grpc-go's interop server."""

    name = "grpc-go"
    secure = False

    def prepare(self) -> list[str]:
        self.port = free_port()
        self.ports = [self.port]
        command = [find("grpc-interop-server", self.lab.tools), f"-port={self.port}"]
        if self.secure:
            pair = self.lab.pki.server
            command += ["-use_tls=true", f"-tls_cert_file={pair.cert}", f"-tls_key_file={pair.key}"]
        return command


class InteropTls(Interop):
    name = "grpc-go-tls"
    secure = True


SERVERS: list[type[Server]] = [Interop, InteropTls]
