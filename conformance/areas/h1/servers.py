"""The servers of HTTP/1.1: go-httpbin, nginx, `openssl s_server`, tinyproxy, squid, microsocks, dante."""

from __future__ import annotations

import gzip
import os
import pwd
import random
import shutil
import subprocess
from pathlib import Path

from harness.servers import Server, find, free_port, has_ipv6

BIG = 100 * 1024 * 1024
"""Bytes of the large file: more than any buffer between two processes."""

TEXT = b"The quick brown fox jumps over the lazy dog.\n" * 2000
USER, PASSWORD = "someone", "a secret: with a colon"


def noise(size: int, seed: int) -> bytes:
    """The same bytes in every run, and not compressible."""
    return random.Random(seed).randbytes(size)


class Httpbin(Server):
    """go-httpbin: routes that say what they have received."""

    name = "httpbin"

    def prepare(self) -> list[str]:
        self.port = free_port()
        self.ports = [self.port]
        return [find("go-httpbin", self.lab.tools), "-host", "127.0.0.1", "-port", str(self.port),
                "-max-body-size", str(2 * BIG)]  # fmt: skip

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


# A frame of one stored block (RFC 8878 section 3.1.1): magic, single segment with a one-byte size,
# last block of type raw; and a brotli stream of one literal run (RFC 7932) for the same word.
ZSTD_HELLO = bytes.fromhex("28b52ffd2005") + ((5 << 3) | 1).to_bytes(3, "little") + b"hello"
BROTLI_HELLO = bytes.fromhex("0b0280") + b"hello" + b"\x03"


class Nginx(Server):
    """nginx: static files, compression, TLS, keep-alive in every manner, uploads by WebDAV."""

    name = "nginx"

    def prepare(self) -> list[str]:
        program = find("nginx")
        kinds = ["plain", "close", "few", "brief", "tls", "tls_close", "mtls", "expired", "other_name", "self_signed"]
        self.port = {kind: free_port() for kind in kinds}
        self.ports = list(self.port.values())
        self.port_v6 = free_port("::1") if has_ipv6() else None
        # The path of a Unix socket has about a hundred bytes; the build folder may be deep.
        self.socket = self.lab.scratch() / "nginx.sock"
        self.access_log = self.folder / "access.log"
        self.www = self.folder / "www"
        self.uploads = self.www / "upload"
        self._fill()
        config = self.folder / "nginx.conf"
        config.write_text(self._config())
        return [program, "-p", str(self.folder), "-c", str(config)]

    def url(self, path: str, kind: str = "plain", host: str = "127.0.0.1") -> str:
        scheme = "http" if kind in ("plain", "close", "few", "brief") else "https"
        return f"{scheme}://{host}:{self.port[kind]}{path}"

    def requests(self, path: str) -> int:
        """How many requests for `path` stand in the access log."""
        return sum(f" {path} " in line for line in self.access_log.read_text().splitlines())

    def _fill(self) -> None:
        self.uploads.mkdir(parents=True)
        for folder in ("text", "br", "zstd", "gzip", "early"):
            (self.www / folder).mkdir()
        (self.www / "text/fox.txt").write_bytes(TEXT)
        (self.www / "gzip/fox.txt").write_bytes(gzip.compress(TEXT))
        (self.www / "br/hello.txt").write_bytes(BROTLI_HELLO)
        (self.www / "zstd/hello.txt").write_bytes(ZSTD_HELLO)
        (self.www / "empty").write_bytes(b"")
        for size in SIZES:
            (self.www / f"size-{size}").write_bytes(noise(size, size))
        (self.www / "big").write_bytes(noise(BIG, 1))

    def _config(self) -> str:
        # As root the workers stay root, so that they can read a clone wherever it lies.
        user = "user root;" if os.geteuid() == 0 else ""
        temporary = "\n".join(
            f"    {kind}_temp_path {self.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        v6 = f"listen [::1]:{self.port_v6};" if self.port_v6 else ""
        pki = self.lab.pki
        servers = [
            self._server("plain", f"listen unix:{self.socket}; {v6}"),
            self._server("close", "keepalive_timeout 0;"),
            self._server("few", "keepalive_requests 2;"),
            self._server("brief", "keepalive_timeout 1s;"),
            self._server("tls", "", pki.server),
            self._server("tls_close", "keepalive_timeout 0;", pki.server),
            self._server("mtls", f"ssl_verify_client on; ssl_client_certificate {pki.ca.cert};", pki.server),
            self._server("expired", "", pki.expired),
            self._server("other_name", "", pki.other_name),
            self._server("self_signed", "", pki.self_signed),
        ]
        return f"""
daemon off; {user}
worker_processes 1;
pid {self.folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 512; }}
http {{
{temporary}
    access_log {self.access_log};
    types {{ text/plain txt; }}
    default_type application/octet-stream;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_session_cache shared:tls:1m;
    reset_timedout_connection on;
    root {self.www};
    {"".join(servers)}
}}
"""

    def _server(self, kind: str, more: str, pair=None) -> str:
        tls = f"ssl_certificate {pair.cert}; ssl_certificate_key {pair.key};" if pair else ""
        return f"""
    server {{
        listen 127.0.0.1:{self.port[kind]} {"ssl" if pair else ""};
        {tls} {more}
        location / {{ }}
        location /text/ {{ gzip on; gzip_min_length 1; gzip_types text/plain; }}
        location /gzip/ {{ add_header Content-Encoding gzip; }}
        location /br/ {{ add_header Content-Encoding br; }}
        location /zstd/ {{ add_header Content-Encoding zstd; }}
        location /upload/ {{ dav_methods PUT DELETE; client_max_body_size 200m; }}
        location /early/ {{ dav_methods PUT; client_max_body_size 1k; }}
        location = /connection {{ return 200 "$connection $connection_requests"; }}
        location = /tls {{
            return 200 "$ssl_protocol|$ssl_server_name|$ssl_alpn_protocol|$ssl_session_reused|$ssl_client_s_dn";
        }}
        location = /loop {{ return 302 /loop; }}
        location = /busy {{ return 503; }}
        location = /reset {{ return 444; }}
        location = /no-content {{ return 204; }}
    }}
"""


# Around the sizes that buffers have.
SIZES = (1, 1023, 4096, 8191, 8192, 16384, 16385, 65535, 65536, 65537, 1_000_003)


class OpensslServer(Server):
    """`openssl s_server -www`: an HTTP/1.0 status page that ends when the connection does."""

    protocol: str

    def prepare(self) -> list[str]:
        self.port = free_port()
        self.ports = [self.port]
        pair = self.lab.pki.server
        return [find("openssl"), "s_server", "-accept", f"127.0.0.1:{self.port}", "-cert", str(pair.cert),
                "-key", str(pair.key), "-quiet", *self.mode()]  # fmt: skip

    def mode(self) -> list[str]:
        return ["-www", self.protocol]

    def url(self, path: str = "/") -> str:
        return f"https://127.0.0.1:{self.port}{path}"


class Openssl12(OpensslServer):
    name, protocol = "openssl-tls12", "-tls1_2"


class Openssl13(OpensslServer):
    name, protocol = "openssl-tls13", "-tls1_3"


class OpensslRaw(OpensslServer):
    """`openssl s_server -HTTP`: sends a file as it is, head and all, and closes."""

    name = "openssl-raw"

    def mode(self) -> list[str]:
        return ["-HTTP"]

    def answer(self, name: str, wire: bytes) -> str:
        """The URL that answers exactly `wire`."""
        (self.folder / name).write_bytes(wire)
        return self.url(f"/{name}")


class Tinyproxy(Server):
    """tinyproxy: forwards http, tunnels https; says `Via`."""

    name = "tinyproxy"
    auth = ""

    def prepare(self) -> list[str]:
        self.port = free_port()
        self.ports = [self.port]
        config = self.folder / "tinyproxy.conf"
        config.write_text(
            f"Port {self.port}\nListen 127.0.0.1\nAllow 127.0.0.1\nTimeout 60\nMaxClients 50\n"
            f'ViaProxyName "{self.name}.test"\n{self.auth}'
        )
        return [find("tinyproxy"), "-d", "-c", str(config)]

    def url(self, credentials: str = "") -> str:
        return f"http://{credentials}127.0.0.1:{self.port}"


class TinyproxyAuth(Tinyproxy):
    name = "tinyproxy-auth"
    auth = "BasicAuth someone secret\n"


class Squid(Server):
    """squid: one port open to all, one that asks for a password, one that speaks TLS itself."""

    name = "squid"

    def prepare(self) -> list[str]:
        program = find("squid")
        helper = find("basic_ncsa_auth", Path("/usr/lib/squid"), Path("/usr/lib64/squid"))
        self.open, self.closed, self.secure = free_port(), free_port(), free_port()
        self.ports = [self.open, self.closed, self.secure]
        # squid drops its rights, so what it reads afterwards must not lie in somebody's home.
        public = self.lab.scratch()
        users = public / "users"
        digest = subprocess.run(
            ["openssl", "passwd", "-apr1", "-stdin"], input=PASSWORD, capture_output=True, text=True, check=True
        ).stdout
        users.write_text(f"{USER}:{digest}")
        config = public / "squid.conf"
        config.write_text(self._config(helper, users))
        if os.geteuid() == 0:
            owner = self._unprivileged()
            shutil.chown(public, owner)
        return [program, "-N", "-d", "1", "-f", str(config)]

    @staticmethod
    def _unprivileged() -> str:
        names = {entry.pw_name for entry in pwd.getpwall()}
        return next(name for name in ("proxy", "squid", "nobody") if name in names)

    def _config(self, helper: str, users: Path) -> str:
        user = f"cache_effective_user {self._unprivileged()}" if os.geteuid() == 0 else ""
        return f"""
{user}
http_port 127.0.0.1:{self.open} name=open
http_port 127.0.0.1:{self.closed} name=closed
https_port 127.0.0.1:{self.secure} tls-cert={self.lab.pki.server.cert} tls-key={self.lab.pki.server.key}
visible_hostname squid.test
pid_filename none
access_log none
cache_log /dev/null
cache deny all
cache_store_log none
netdb_filename none
coredump_dir {users.parent}
icp_port 0
pinger_enable off
shutdown_lifetime 0 seconds
auth_param basic program {helper} {users}
auth_param basic children 1
auth_param basic realm squid
acl asks myportname closed
acl known proxy_auth REQUIRED
acl forbidden dstdomain forbidden.test
http_access deny forbidden
http_access allow asks known
http_access deny asks
http_access allow all
"""

    def url(self, credentials: str = "", asks: bool = False) -> str:
        return f"http://{credentials}127.0.0.1:{self.closed if asks else self.open}"

    def secure_url(self) -> str:
        return f"https://127.0.0.1:{self.secure}"


class Microsocks(Server):
    """microsocks: SOCKS5; its log says whether a name or an address was asked for."""

    name = "microsocks"
    auth: tuple[str, ...] = ()

    def prepare(self) -> list[str]:
        self.port = free_port()
        self.ports = [self.port]
        return [find("microsocks"), "-i", "127.0.0.1", "-p", str(self.port), *self.auth]

    def url(self, scheme: str, credentials: str = "") -> str:
        return f"{scheme}://{credentials}127.0.0.1:{self.port}"


class MicrosocksAuth(Microsocks):
    name = "microsocks-auth"
    auth = ("-u", "someone", "-P", "secret")


class Dante(Server):
    """dante: SOCKS4 and SOCKS5."""

    name = "dante"

    def prepare(self) -> list[str]:
        program = find("danted")
        self.port = free_port()
        self.ports = [self.port]
        config = self.folder / "danted.conf"
        rights = "user.privileged: root\nuser.unprivileged: nobody\n" if os.geteuid() == 0 else ""
        config.write_text(f"""
logoutput: stderr
internal: 127.0.0.1 port = {self.port}
external: 127.0.0.1
clientmethod: none
socksmethod: none
{rights}
client pass {{ from: 0.0.0.0/0 to: 0.0.0.0/0 }}
socks pass {{ from: 0.0.0.0/0 to: 0.0.0.0/0 log: connect error }}
""")
        return [program, "-f", str(config), "-p", str(self.folder / "danted.pid")]

    def url(self, scheme: str) -> str:
        return f"{scheme}://127.0.0.1:{self.port}"


SERVERS: list[type[Server]] = [
    Httpbin, Nginx, Openssl12, Openssl13, OpensslRaw, Tinyproxy, TinyproxyAuth, Squid, Microsocks,
    MicrosocksAuth, Dante,
]  # fmt: skip
