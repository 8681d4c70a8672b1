"""Clocks and counters of this process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress


def forget_peak_rss() -> None:
    """Begins the peak of the resident set anew, where the kernel permits it."""
    with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def peak_rss() -> int:
    """The largest resident set since then, in bytes."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def find_counter() -> Callable[[], dict[str, int]] | None:
    """What reads the preloaded counter of heap allocations, if it is there."""
    if "LD_PRELOAD" not in os.environ:
        return None
    import ctypes  # Only here: it would be a part of everybody's memory.

    try:
        count = ctypes.CDLL(None).mimus_bench_count
    except AttributeError:
        return None
    calls, size = ctypes.c_uint64(), ctypes.c_uint64()

    def read() -> dict[str, int]:
        count(ctypes.byref(calls), ctypes.byref(size))
        return {"calls": calls.value, "bytes": size.value}

    return read


ALLOCATIONS = find_counter()


class Meter:
    """What was spent before a block."""

    __slots__ = ("allocations", "cpu", "wall")

    def __init__(self) -> None:
        forget_peak_rss()
        self.allocations = ALLOCATIONS() if ALLOCATIONS else None
        self.cpu = time.process_time_ns()
        self.wall = time.monotonic_ns()

    def read(self) -> tuple[int, int, dict[str, int] | None, int]:
        """Time, CPU time, allocations since then, and the largest resident set."""
        wall = time.monotonic_ns() - self.wall
        cpu = time.process_time_ns() - self.cpu
        allocations = None
        if ALLOCATIONS and self.allocations:
            after = ALLOCATIONS()
            allocations = {key: after[key] - before for key, before in self.allocations.items()}
        return wall, cpu, allocations, peak_rss()
