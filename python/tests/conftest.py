"""The embedded origin, for all tests."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Origin:
    http: str
    https: str
    ports: dict[str, str]
    ca: str


def _binary() -> str:
    target = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[2] / "target"))
    for profile in ("debug", "release"):
        if (target / profile / "mimus-origin").exists():
            return str(target / profile / "mimus-origin")
    return os.environ["MIMUS_ORIGIN"]


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Origin]:
    ca = str(tmp_path_factory.mktemp("origin") / "ca.pem")
    command = [os.environ.get("MIMUS_ORIGIN") or _binary(), "--stdin", "--port", "all", "--ca-out", ca]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        says = json.loads(process.stdout.readline())
        yield Origin(says["http"], says["https"], says["ports"], ca)
        process.terminate()
