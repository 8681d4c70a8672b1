#!/usr/bin/env python3
"""Runs a client against servers nobody here wrote, and says what it did right.

Each area is a package under `areas/` with `SERVERS` (classes to start) and `CHECKS` (a list of
`Check`), and may have a `report` of what came of them. The exit status is 1 when a check failed, 2 when
there was nothing to run.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import re
import signal
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness.checks import Check, Failed, Skipped  # noqa: E402
from harness.lab import Lab  # noqa: E402

OK, FAIL, SKIP = "ok", "FAIL", "skip"


def areas() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules([str(HERE / "areas")]))


def verdict(check: Check, lab: Lab) -> tuple[str, str]:
    """Runs one check: its verdict and the reason, empty when it passed."""
    try:
        for name in check.needs:
            lab.require(name)
        check.run(lab)
        return OK, ""
    except Skipped as reason:
        return SKIP, str(reason)
    except Failed as reason:
        return FAIL, str(reason)
    except Exception as error:  # a fault of the check itself must not hide the others
        return FAIL, f"the check broke: {type(error).__name__}: {error}"


def run_area(name: str, options: argparse.Namespace) -> Counter:
    area = importlib.import_module(f"areas.{name}")
    checks = [
        check
        for check in area.CHECKS
        if not (options.quick and check.slow) and re.search(options.match, check.name)
    ]
    counts: Counter = Counter()
    outcomes: dict[str, tuple[str, str]] = {}
    lab = Lab(name, options.root, options.client, options.quick)
    try:
        needed = {server for check in checks for server in check.needs}
        lab.start([kind for kind in area.SERVERS if kind.name in needed or options.keep])
        print(f"{name}: {len(checks)} checks with {lab.client.version[:60]}", flush=True)
        for check in checks:
            started = time.monotonic()
            word, reason = verdict(check, lab)
            counts[word] += 1
            outcomes[check.name] = word, reason
            ms = (time.monotonic() - started) * 1000
            print(f"  {word:4} {ms:7.0f} ms  {check.name}{': ' + reason if reason else ''}", flush=True)
    finally:
        lab.stop()
    if hasattr(area, "report"):
        area.report(outcomes, not options.quick and not options.match, options.write)
    return counts


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("areas", nargs="*", help=f"areas to run (default: all: {' '.join(areas())})")
    parser.add_argument("--client", default="target/debug/mimus", help="client to drive (default: %(default)s)")
    parser.add_argument("--match", default="", help="only checks whose name matches this regular expression")
    parser.add_argument("--quick", action="store_true", help="without the slow checks")
    parser.add_argument("--keep", action="store_true", help="start every server, needed or not")
    parser.add_argument("--write", action="store_true", help="write the table of profiles into docs/PROFILES.md")
    parser.add_argument("--list", action="store_true", help="list the checks and stop")
    options = parser.parse_args(arguments)
    unknown = set(options.areas) - set(areas())
    if unknown:
        parser.error(f"no such area: {' '.join(sorted(unknown))}; there is: {' '.join(areas())}")
    options.root = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target")).resolve()
    return options


def main(arguments: list[str]) -> int:
    options = options_of(arguments)
    chosen = options.areas or areas()
    if options.list:
        for name in chosen:
            for check in importlib.import_module(f"areas.{name}").CHECKS:
                print(f"{name}: {check.name}{' (slow)' if check.slow else ''}")
        return 0
    # A terminated run stops its servers as an interrupted one does, also where a shell that started
    # this in the background has told it to ignore interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    counts: Counter = Counter()
    try:
        for name in chosen:
            counts += run_area(name, options)
    except KeyboardInterrupt:
        print("conformance: interrupted", file=sys.stderr)
        return 130
    print(f"{counts[OK]} passed, {counts[FAIL]} failed, {counts[SKIP]} skipped")
    if not counts:
        return 2
    return 1 if counts[FAIL] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
