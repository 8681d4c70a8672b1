"""psf/requests' own suite, as it is, with `mimus.requests` in the place of `requests`."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections import Counter
from pathlib import Path

from harness.checks import Book, Failed, expect

book = Book()

PLUGIN = Path(__file__).resolve().parent / "plugin"
HANG = 900
"""Seconds that the whole suite may take."""

FLOOR = 225
"""Of the tests that talk HTTP, at least so many pass."""

# What fails, and why: none of it is forgotten, and none of it is hidden.
KNOWN: dict[str, str] = {}

# Where no packet is lost, only refused, connecting cannot time out: then requests fails these as well.
TARPIT = ("10.255.255.1", 80)
OF_THE_TARPIT = re.compile(r"TestTimeout::test_(total_timeout_connect|connect_timeout)\[")


def run(lab, *selection: str) -> dict[str, dict]:
    """Runs what is selected of the suite: by test, whether it talks HTTP, and how it went."""
    suite = lab.server("psf-requests")
    results = suite.folder / "results.json"
    environment = lab.client.environment({"RESULTS": str(results), "PYTHONPATH": str(PLUGIN)})
    environment.pop("REQUESTS_CA_BUNDLE", None)
    if suite.package is None:
        environment["KNOWN_GOOD"] = "1"
    else:
        environment["PYTHONPATH"] += f":{suite.package}"
    command = [str(suite.python), "-m", "pytest", "-p", "in_requests_place", "-p", "no:cacheprovider", "--quiet",
               "--tb=short", *selection]  # fmt: skip
    with suite.log.open("wb") as log:
        try:
            subprocess.run(command, cwd=suite.source, env=environment, stdout=log, stderr=log, timeout=HANG)
        except subprocess.TimeoutExpired:
            raise Failed(f"still running after {HANG} s") from None
    if not results.exists():
        raise Failed(f"the suite did not run: {suite.said().strip()[-300:]}")
    return json.loads(results.read_text())


def loses_packets() -> bool:
    """Whether the suite's unreachable address is that."""
    try:
        socket.create_connection(TARPIT, timeout=0.5).close()
    except TimeoutError:
        return True
    except OSError:
        return False
    return False


def judge(results: dict[str, dict]) -> int:
    """Prints the counts, and fails where a test fails that is not known to: how many passed that talk HTTP."""
    excused = dict(KNOWN)
    if not loses_packets():
        refused = "packets to 10.255.255.1 are refused here, not lost"
        excused |= {name: refused for name in results if OF_THE_TARPIT.search(name)}
    for title, chosen in (("that talk HTTP", True), ("of the rest", False)):
        counts = Counter(its["outcome"] for its in results.values() if its["http"] is chosen)
        words = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
        print(f"       psf/requests, {sum(counts.values())} tests {title}: {words}", flush=True)
    failed = {name: its["reason"] for name, its in results.items() if its["outcome"] in ("failed", "lost")}
    for name in sorted(failed.keys() & excused.keys()):
        print(f"         known: {name}: {excused[name]}", flush=True)
    healed = [name for name in KNOWN if results.get(name, {}).get("outcome") == "passed"]
    expect(not healed, f"{healed} pass, and are listed as known to fail")
    new = {name: reason for name, reason in failed.items() if name not in excused}
    expect(not new, f"{len(new)} tests fail that did not: {dict(sorted(new.items())[:8])}")
    return sum(its["http"] and its["outcome"] == "passed" for its in results.values())


@book.check("psf/requests' suite, the tests of its own sockets", "psf-requests")
def a_part(lab) -> None:
    judge(run(lab, "tests/test_lowlevel.py", "tests/test_structures.py", "tests/test_hooks.py"))


@book.check("psf/requests' suite, all of it", "psf-requests", slow=True)
def all_of_it(lab) -> None:
    results = run(lab, "tests")
    passed = judge(results)
    expect(passed >= FLOOR, f"{passed} tests that talk HTTP pass, {FLOOR} is the least")
