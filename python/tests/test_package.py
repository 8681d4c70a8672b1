"""The package itself: what importing it costs, and what it says about itself."""

import gc
import inspect
import subprocess
import sys

import pytest

import mimus


def test_importing_it_imports_nothing_heavy():
    code = "import sys; before = set(sys.modules); import mimus; print(*sorted(set(sys.modules) - before))"
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"]
    imported = set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    # What every interpreter has loaded by the time it runs a program.
    usual = {"_collections_abc", "abc", "_abc"}
    assert {name for name in imported if name.partition(".")[0] != "mimus"} <= usual


def test_everything_public_is_documented():
    for name in mimus.__all__:
        thing = getattr(mimus, name)
        if name.startswith("__"):
            continue
        assert inspect.getdoc(thing), name
        if not inspect.isclass(thing):
            continue
        assert thing.__module__.partition(".")[0] == "mimus", name
        for member, value in vars(thing).items():
            if not member.startswith("_") and callable(value):
                assert inspect.getdoc(getattr(thing, member)), f"{name}.{member}"
                if not isinstance(value, property):
                    inspect.signature(getattr(thing, member))


def test_memory_stays_flat(client, origin):
    resource = pytest.importorskip("resource")

    def calls(n):
        for turn in range(n):
            client.get(origin.url("/get"), params={"n": turn}, headers={"X": "y"}).json()
            client.post(origin.url("/upload"), content=bytes(10_000)).headers["content-type"]
        client.get(origin.url("/bytes/500000")).text
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = calls(300)
    # In KiB; a leak of one header list a call would be more.
    assert calls(1500) - before < 4 * 1024
