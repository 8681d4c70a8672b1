"""The servers of HTTP/2: nghttpd, nginx, Go's net/http."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

from harness.checks import Book, Skipped
from harness.servers import Server, find, free_port, go_program

BIG = 100 * 1024 * 1024
"""Bytes of the large file: more than any window."""

# Around the sizes that frames and windows have.
SIZES = (0, 1, 16383, 16384, 16385, 65535, 65536, 65537, 1_000_003)


def noise(size: int) -> bytes:
    """The same bytes in every run, and not compressible."""
    return random.Random(size).randbytes(size)


def fill(www: Path) -> None:
    www.mkdir(parents=True)
    for size in (*SIZES, BIG):
        (www / f"size-{size}").write_bytes(noise(size))


class Secured(Server):
    """A server with a plain and a secure port for the same routes."""

    def ask(self, secure: bool, path: str) -> list[str]:
        """The arguments that ask for `path` over HTTP/2, and over nothing else."""
        if secure:
            return ["--http2", "--cacert", str(self.lab.pki.ca.cert), self.url(path, secure=True)]
        return ["--http2-prior-knowledge", self.url(path)]

    def url(self, path: str, secure: bool = False) -> str:
        scheme, port = ("https", self.secure) if secure else ("http", self.plain)
        return f"{scheme}://127.0.0.1:{port}{path}"


class Nghttpd(Secured):
    """nghttpd, one process a port: files, uploads echoed; says which frames it saw."""

    name = "nghttpd"
    options: tuple[str, ...] = ("--echo-upload",)

    def prepare(self) -> list[str]:
        program = find("nghttpd")
        fill(self.folder / "www")
        self.plain, self.secure = free_port(), free_port()
        self.ports = [self.plain, self.secure]
        pair = self.lab.pki.server
        shared = [program, "-v", "-a", "127.0.0.1", "-d", str(self.folder / "www"), *self.options]
        both = self.folder / "both.sh"
        quoted = lambda words: " ".join(f"'{word}'" for word in words)  # noqa: E731
        both.write_text(
            f"{quoted([*shared, '--no-tls', str(self.plain)])} &\n"
            f"{quoted([*shared, str(self.secure), str(pair.key), str(pair.cert)])} &\nwait\n"
        )
        return ["sh", str(both)]


class NghttpdOdd(Nghttpd):
    """nghttpd with every choice that a client has to bear.

    Not with a window below 65 535: nghttp2 1.52 then takes what left before its SETTINGS arrived for
    a violation, against RFC 9113 section 6.9.3.
    """

    name = "nghttpd-odd"
    options = (
        "--echo-upload", "--padding=200", "--max-concurrent-streams=1", "--window-bits=16",
        "--connection-window-bits=16", "--header-table-size=0", "--encoder-header-table-size=0",
        "--no-content-length", "--trailer", "x-sum: 5", "--push=/size-1=/size-16384",
    )  # fmt: skip


class NghttpdEarly(Nghttpd):
    """nghttpd that answers before it has read."""

    name = "nghttpd-early"
    options = ("--early-response",)


class Nginx(Secured):
    """nginx: files, uploads by WebDAV, its own count of connections and requests."""

    name = "nginx"

    def prepare(self) -> list[str]:
        program = find("nginx")
        self.www = self.folder / "www"
        fill(self.www)
        (self.www / "upload").mkdir()
        self.plain, self.secure, self.few, self.both = (free_port() for _ in range(4))
        self.one, self.one_secure = free_port(), free_port()
        self.ports = [self.plain, self.secure, self.few, self.both, self.one, self.one_secure]
        self.access_log = self.folder / "access.log"
        config = self.folder / "nginx.conf"
        config.write_text(self._config())
        return [program, "-p", str(self.folder), "-c", str(config)]

    def _config(self) -> str:
        # As root the workers stay root, so that they can read a clone wherever it lies.
        user = "user root;" if os.geteuid() == 0 else ""
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "\n".join(f"    {kind}_temp_path {self.folder}/{kind};" for kind in kinds)
        servers = [
            self._server(f"{self.plain} http2"),
            self._server(f"{self.secure} ssl http2"),
            self._server(f"{self.few} ssl http2", "keepalive_requests 2;"),
            self._server(f"{self.both} ssl http2", "http2_max_concurrent_streams 1; http2_chunk_size 1k;"),
            self._server(f"{self.one}"),
            self._server(f"{self.one_secure} ssl"),
        ]
        return f"""
daemon off; {user}
worker_processes 1;
pid {self.folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 512; }}
http {{
{temporary}
    log_format frames '$server_protocol $connection $connection_requests $status $request_length $uri';
    access_log {self.access_log} frames;
    types {{ text/plain txt; }}
    default_type application/octet-stream;
    ssl_certificate {self.lab.pki.server.cert};
    ssl_certificate_key {self.lab.pki.server.key};
    root {self.www};
    {"".join(servers)}
}}
"""

    @staticmethod
    def _server(listen: str, more: str = "") -> str:
        return f"""
    server {{
        listen 127.0.0.1:{listen};
        {more}
        location / {{ }}
        location /upload/ {{ dav_methods PUT DELETE; client_max_body_size 200m; }}
        location /early/ {{ dav_methods PUT; client_max_body_size 1k; }}
        location = /protocol {{ return 200 "$server_protocol"; }}
        location = /connection {{ return 200 "$connection $connection_requests"; }}
        location = /no-content {{ return 204; }}
        location = /moved {{ return 302 /protocol; }}
        location = /reset {{ return 444; }}
    }}
"""


class GoHttp2(Secured):
    """Go's net/http: says what arrived, resets, sends GOAWAY."""

    name = "go"
    source = Path(__file__).resolve().parents[2] / "go-http2"

    def prepare(self) -> list[str]:
        program = go_program(self.lab, self.source)
        self.plain, self.secure = free_port(), free_port()
        self.ports = [self.plain, self.secure]
        pair = self.lab.pki.server
        return [program, "-plain", f"127.0.0.1:{self.plain}", "-tls", f"127.0.0.1:{self.secure}",
                "-cert", str(pair.cert), "-key", str(pair.key)]  # fmt: skip


def twice(book: Book) -> Callable:
    """A decorator as `Book.check` whose check is made by prior knowledge and over TLS."""

    def on_both(name: str, *needs: str, slow: bool = False) -> Callable:
        def add(run: Callable) -> Callable:
            for secure, way in ((False, "prior knowledge"), (True, "TLS")):
                book.check(f"{name}, {way}", *needs, slow=slow)(partial(run, secure=secure))
            return run

        return add

    return on_both


def curl_cannot(lab, what: str) -> None:
    """Skips what curl is known to do wrong, as seen with 7.88; nghttp does it right."""
    if lab.client.is_curl:
        raise Skipped(f"curl 7.88 {what}")


SERVERS: list[type[Server]] = [Nghttpd, NghttpdOdd, NghttpdEarly, Nginx, GoHttp2]
