"""What the tests share: the embedded origin, and clients that trust it."""

import contextlib
import functools
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


# Nor does anybody's netrc file say who asks.
os.environ["NETRC"] = os.devnull


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


capture = None


def pytest_configure(config):
    global capture
    capture = config.pluginmanager.getplugin("capturemanager")


@functools.cache
def binary():
    """The origin's program: MIMUS_ORIGIN, or what cargo has built, or builds before everybody's eyes."""
    named = os.environ.get("MIMUS_ORIGIN")
    if named:
        return named
    built = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "mimus-origin"
    if not is_current(built):
        command = ["cargo", "build", "--locked", "-p", "mimus-testkit", "--bin", "mimus-origin"]
        with capture.global_and_fixture_disabled():
            print("\nbuilding the origin (MIMUS_ORIGIN names one that is there):", *command, flush=True)
            subprocess.run(command, cwd=ROOT, check=True)
    return str(built)


def is_current(built):
    """Whether the program is there and no source that cargo noted for it has changed since."""
    noted = built.with_name(built.name + ".d")
    if not built.exists() or not noted.exists():
        return False
    sources = noted.read_text(encoding="utf-8").partition(": ")[2].replace("\\ ", "\0").split()
    changed = (pathlib.Path(source.replace("\0", " ")) for source in sources)
    made = built.stat().st_mtime
    return all(source.exists() and source.stat().st_mtime <= made for source in changed)


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
