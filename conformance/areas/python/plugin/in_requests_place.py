"""A pytest plugin: `requests` and all below it is `mimus.requests`, and the suite's outcome is kept.

`RESULTS` names the file for it: of each test whether it talks HTTP, and how it went. With `KNOWN_GOOD` the name is
left to the package that has it.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import json
import os
import sys
from pathlib import Path

NAME = "requests"
# The suite's own servers, as fixtures and in its code, and addresses that it tries to reach.
FIXTURES = {"httpbin", "httpbin_secure", "nosan_server"}
NAMES = {"TLSServer", "Server", "TARPIT"}
MODULE = "test_lowlevel"


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `requests.x` as `mimus.requests.x`: the same module, by both names."""

    def find_spec(self, name, path=None, target=None):
        mine = name == NAME or name.startswith(f"{NAME}.")
        return importlib.machinery.ModuleSpec(name, self) if mine else None

    def create_module(self, spec):
        importlib.import_module(f"mimus.{spec.name}")
        return None

    def exec_module(self, module):
        sys.modules[module.__name__] = sys.modules[f"mimus.{module.__name__}"]


def name_the_unreachable() -> None:
    """Gives an address to the one host of the Internet that the suite asks a proxy for: the proxy is its own, and is
    told of the host only after its address has been found."""
    from mimus.requests import adapters

    made = adapters.PoolManager.__init__

    def with_address(self, *arguments, **options):
        made(self, *arguments, resolve={"httpbin.org": ["127.0.0.1"]}, **options)

    adapters.PoolManager.__init__ = with_address


if "KNOWN_GOOD" not in os.environ:
    sys.meta_path.insert(0, Alias())
    name_the_unreachable()

results: dict[str, dict] = {}


def talks_http(item) -> bool:
    code = getattr(item.function, "__code__", None)
    return bool(
        FIXTURES.intersection(item.fixturenames)
        or item.module.__name__.endswith(MODULE)
        or (code is not None and NAMES.intersection(code.co_names))
    )


def pytest_collection_modifyitems(items):
    for item in items:
        results[item.nodeid] = {"http": talks_http(item), "outcome": "lost", "reason": ""}


def pytest_runtest_logreport(report):
    its = results[report.nodeid]
    if report.failed:
        its["outcome"] = "failed"
        its["reason"] = its["reason"] or (str(report.longrepr).strip().splitlines() or [""])[-1]
    elif report.skipped:
        its["outcome"] = "xfailed" if hasattr(report, "wasxfail") else "skipped"
    elif report.when == "call":
        its["outcome"] = "passed"


def pytest_sessionfinish():
    Path(os.environ["RESULTS"]).write_text(json.dumps(results))
