"""Ctrl-C while something is waited for."""

import os
import shutil
import signal
import subprocess
import sys
import threading

import pytest

# Says "ready" as the last thing before it waits, and afterwards what became of the wait and of the client.
PROGRAM = """
import signal, sys
import mimus
signal.signal(signal.SIGINT, signal.default_int_handler)
url, fine, where = sys.argv[1:]
client = mimus.Client(verify=False, timeout=mimus.Timeout(connect=None))
options = {}
if where == "send":
    options = {"content": b"x" * 50_000_000}
try:
    if where in ("stream", "lines"):
        response = client.get(url, stream=True)
        print("ready", flush=True)
        list(response.iter_lines() if where == "lines" else response)
    elif where == "websocket":
        socket = client.websocket(url)
        print("ready", flush=True)
        socket.recv()
    elif where == "events":
        source = client.sse(url)
        next(source)
        print("ready", flush=True)
        next(source)
    else:
        print("ready", flush=True)
        (client.get if where == "body" else client.post)(url, **options)
except KeyboardInterrupt:
    again = client.get(fine)
    print("interrupted", again.status, again.reused, flush=True)
else:
    print("went on", flush=True)
"""


def interrupted(url, fine, where, **environment):
    """What the program says when it is sent SIGINT as often as it takes."""
    command = [sys.executable, "-c", PROGRAM, url, fine, where]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
    try:
        assert process.stdout.readline() == "ready\n"
        done = threading.Event()

        def strike():
            # One signal is enough once it sleeps, but nobody can tell from here when it does.
            while not done.wait(0.5):
                process.send_signal(signal.SIGINT)

        striker = threading.Thread(target=strike)
        striker.start()
        try:
            return process.stdout.readline()
        finally:
            done.set()
            striker.join()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize(
    ("where", "port", "path"),
    [
        ("connect", "no-accept", "/"),
        ("tls", "tls-stall", "/"),
        ("send", "never-read", "/"),
        ("head", "http", "/delay/300"),
        ("head-h2", "tls-h2", "/delay/300"),
        ("body", "http", "/drip?numbytes=10&duration=300"),
        ("stream", "http", "/drip?numbytes=10&duration=300"),
        ("lines", "tls-h2", "/drip?numbytes=10&duration=300"),
        ("websocket", "http", "/ws/silent"),
        ("websocket", "https", "/ws/silent"),
        ("events", "http", "/sse?ms=300000"),
    ],
)
def test_an_interrupt_ends_the_wait(origin, where, port, path):
    assert interrupted(origin.url(path, port), origin.url("/get"), where) == "interrupted 200 False\n"


def test_a_signal_whose_handler_returns_ends_nothing(client, origin):
    struck = []
    before = signal.signal(signal.SIGALRM, lambda *_: struck.append(True))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        assert client.get(origin.url("/delay/0.5")).status == 200
        assert client.get(origin.url("/delay/0.5", "tls-h2")).status == 200
        assert len(client.get(origin.url("/drip?numbytes=5&duration=0.5")).content) == 5
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert struck


def test_a_handler_may_make_calls_of_its_own(client, origin):
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(client.get(origin.url("/get")).status))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        assert client.get(origin.url("/delay/0.5")).status == 200
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen == [200]


SLOW_NAMES = "#include <unistd.h>\nint getaddrinfo() { for (;;) sleep(300); }\n"


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler to make a slow resolver with")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only there is a library preloaded like this")
def test_an_interrupt_ends_a_name_lookup(origin, tmp_path):
    source = tmp_path / "slow.c"
    source.write_text(SLOW_NAMES)
    library = tmp_path / "slow.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    said = interrupted("http://slow.test/", origin.url("/get"), "resolve", LD_PRELOAD=str(library))
    assert said == "interrupted 200 False\n"
