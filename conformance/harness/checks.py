"""Checks: named functions that raise `Failed` or `Skipped`, or return and have passed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class Failed(Exception):
    """The client did something else than it must; the text is the reason."""


class Skipped(Exception):
    """The check cannot be made here; the text is the reason."""


@dataclass(frozen=True)
class Check:
    name: str
    needs: tuple[str, ...]
    slow: bool
    run: Callable


class Book:
    """The checks of one module, in the order they are written."""

    def __init__(self) -> None:
        self.checks: list[Check] = []

    def check(self, name: str, *needs: str, slow: bool = False) -> Callable:
        """Adds a check called `name` that needs the servers `needs`; `slow` leaves `--quick` runs."""

        def add(run: Callable) -> Callable:
            self.checks.append(Check(name, needs, slow, run))
            return run

        return add


def expect(condition: bool, reason: str) -> None:
    if not condition:
        raise Failed(reason)


def expect_eq(what: str, got: object, wanted: object) -> None:
    if got != wanted:
        raise Failed(f"{what}: {brief(got)} instead of {brief(wanted)}")


def expect_in(what: str, part: object, whole) -> None:
    if part not in whole:
        raise Failed(f"{what}: {brief(part)} not in {brief(whole)}")


def brief(value: object, limit: int = 100) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def sha256(data: bytes | Path) -> str:
    if isinstance(data, bytes):
        return hashlib.sha256(data).hexdigest()
    with data.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
