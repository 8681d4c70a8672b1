#!/usr/bin/env python3
"""Prints what one small exchange costs in system calls and in allocations; fails over the budget.

System calls are counted by strace over sequential GETs against an origin in another process. A run
of no GETs is taken away, so that starting up does not count.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

# System calls an exchange may make: one write and one read, and on tokio one look at epoll; the rest
# is slack for what happens once in many exchanges.
BUDGET = {"blocking": 2.1, "tokio": 3.1}

RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", "target"), "release")


def build() -> None:
    for what in (["-p", "mimus", "--example", "allocations", "--example", "sequential"], ["-p", "mimus-testkit", "--bin", "mimus-origin"]):
        subprocess.run(["cargo", "build", "--release", "--locked", "-q", *what], check=True)


@contextmanager
def origin():
    """The URL of a body of 16 bytes; the origin ends when its input does."""
    command = [RELEASE / "mimus-origin", "--stdin"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        base = json.loads(process.stdout.readline())["http"]
        yield f"{base if '://' in base else 'http://' + base}".rstrip("/") + "/bytes/16"
    finally:
        process.stdin.close()
        process.wait(timeout=10)


def parse(table: str) -> dict[str, int]:
    """Calls by name from `strace -c`: % time, seconds, usecs/call, calls, [errors,] name."""
    calls = {}
    for line in table.splitlines():
        columns = line.split()
        if len(columns) >= 5 and columns[3].isdigit() and columns[-1] != "total":
            calls[columns[-1]] = int(columns[3])
    return calls


def traced(runtime: str, rounds: int, url: str) -> dict[str, int]:
    with tempfile.NamedTemporaryFile("r", suffix=".strace") as table:
        client = [RELEASE / "examples" / "sequential", runtime, str(rounds), url]
        strace = ["strace", "-f", "-c", "-o", table.name]
        subprocess.run([*strace, *client], check=True, stdout=subprocess.DEVNULL)
        return parse(table.read())


def per_exchange(many: dict[str, int], none: dict[str, int], rounds: int) -> dict[str, float]:
    """Calls of one exchange, largest first, without those that make up less than 1 in 1000."""
    each = {name: (calls - none.get(name, 0)) / rounds for name, calls in many.items()}
    return {name: n for name, n in sorted(each.items(), key=lambda pair: -pair[1]) if n >= 0.001}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10_000, help="GETs to count (default %(default)s)")
    rounds = parser.parse_args().rounds
    build()
    over = []
    with origin() as url:
        for runtime, budget in BUDGET.items():
            each = per_exchange(traced(runtime, rounds, url), traced(runtime, 0, url), rounds)
            total = sum(each.values())
            names = ", ".join(f"{name} {n:.3f}" for name, n in each.items())
            print(f"small GET, {runtime:<9} {total:.3f} system calls (budget {budget}): {names}", flush=True)
            if total > budget:
                over.append(runtime)
    subprocess.run([RELEASE / "examples" / "allocations"], check=True)
    if over:
        print(f"cost: over the budget of system calls on {' and '.join(over)}", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
