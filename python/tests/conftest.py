"""What the tests share: the embedded origin, and clients that trust it."""

import contextlib
import json
import os
import pathlib
import subprocess

import pytest

import mimus

ROOT = pathlib.Path(__file__).resolve().parents[2]

# No proxy of the environment's stands between a test and its origin.
for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
    os.environ.pop(name, None)
    os.environ.pop(name.upper(), None)


class Origin:
    """The running origin: its addresses by the names of its ports."""

    def __init__(self, said, ca):
        self.http = said["http"]
        self.https = said["https"]
        self.unix = said["unix"]
        self.ports = said["ports"]
        self.pid = said["pid"]
        self.ca = ca

    def url(self, path, port="http"):
        """The URL of a path, on the port of that name."""
        if port in ("http", "https"):
            return getattr(self, port) + path
        address = self.ports[port]
        if port.startswith("tls"):
            # The name in the certificate.
            return f"https://localhost:{address.rpartition(':')[2]}{path}"
        return f"http://{address}{path}"


def binary():
    """The origin's program: MIMUS_ORIGIN, or what cargo builds."""
    named = os.environ.get("MIMUS_ORIGIN")
    if named:
        return named
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = target / "debug" / "mimus-origin"
    if not built.exists():
        command = ["cargo", "build", "--locked", "-p", "mimus-testkit", "--bin", "mimus-origin"]
        subprocess.run(command, cwd=ROOT, check=True)
    return str(built)


@contextlib.contextmanager
def running(ca, *options):
    """An origin that runs as long as the context, with its certificate authority in the file `ca`."""
    command = [binary(), "--stdin", "--ca-out", str(ca), *options]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Origin(json.loads(process.stdout.readline()), ca)
    finally:
        process.stdin.close()
        process.wait(timeout=30)
        process.stdout.close()


@pytest.fixture(scope="session")
def origin(tmp_path_factory):
    """The origin with all its ports."""
    with running(tmp_path_factory.mktemp("origin") / "ca.pem", "--port", "all") as origin:
        yield origin


@pytest.fixture(scope="session")
def origin6(tmp_path_factory):
    """An origin on the loopback address of IPv6."""
    with running(tmp_path_factory.mktemp("origin6") / "ca.pem", "--http", "[::1]:0") as origin:
        origin.http = f"http://[::1]:{origin.http.rpartition(':')[2]}"
        yield origin


@pytest.fixture
def client(origin):
    """A client that trusts the origin."""
    with mimus.Client(verify=str(origin.ca)) as client:
        yield client
