"""What is paid before the first exchange: loading the library, and making a client."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from kit.clock import Meter
from kit.job import Job, Sample, unsupported
from kit.peer import AsyncPeer, Client, Config, Setup

LOAD = """
import time
began = time.monotonic_ns()
import {module}
took = time.monotonic_ns() - began
with open("/proc/self/status") as file:
    peak = next(line.split()[1] for line in file if line.startswith("VmHWM:"))
print(took, peak)
"""


class StartUp:
    """A client that is loaded, or made, instead of being asked for exchanges."""

    def __init__(self, client: Client, config: Config) -> None:
        self.client = client
        self.config = config

    def answer(self, job: Job) -> dict[str, Any]:
        """Does `job`, whose URL is the operation."""
        match job.url:
            case "import":
                return self.load(job)
            case "client":
                return self.make(job)
            case other:
                return unsupported(f"there is no {other!r} to start")

    def load(self, job: Job) -> dict[str, Any]:
        """`import`, each time in a fresh interpreter, which takes the time itself; CPU and memory are the
        interpreter's. What it loads was compiled when it was installed."""
        code = LOAD.format(module=self.client.module)
        command = [sys.executable, "-I", "-c", code]
        sample, began, spent = Sample(), time.monotonic_ns(), children()
        for _ in range(job.ops):
            ended = subprocess.run(command, capture_output=True, text=True)
            if ended.returncode:
                sample.failures.append((ended.stderr.strip().rpartition("\n")[2], 1))
                continue
            took, peak = map(int, ended.stdout.split())
            sample.latency.append(took)
            sample.peak_rss = max(sample.peak_rss, peak * 1024)
        sample.ops = len(sample.latency)
        sample.wall = time.monotonic_ns() - began
        sample.cpu = children() - spent
        return sample.answer()

    def make(self, job: Job) -> dict[str, Any]:
        """One more client, as it comes, in a program that has one. Closing it is not timed."""
        if self.config.loop is not None:
            loop = self.config.loop()
            asyncio.set_event_loop(loop)
            return loop.run_until_complete(self.make_on_loop(job))
        setup, now = Setup(http2=False, ca=None), time.monotonic_ns
        first, latency = self.config.make(setup), []
        meter = Meter()
        for _ in range(job.ops):
            began = now()
            peer = self.config.make(setup)
            latency.append(now() - began)
            peer.close()
        answer = self.made(meter, latency)
        first.close()
        return answer

    async def make_on_loop(self, job: Job) -> dict[str, Any]:
        make: Callable[[Setup], AsyncPeer] = self.config.make  # type: ignore[assignment]
        setup, now = Setup(http2=False, ca=None), time.monotonic_ns
        first, latency = make(setup), []
        meter = Meter()
        for _ in range(job.ops):
            began = now()
            peer = make(setup)
            latency.append(now() - began)
            await peer.close()
        answer = self.made(meter, latency)
        await first.close()
        return answer

    @staticmethod
    def made(meter: Meter, latency: list[int]) -> dict[str, Any]:
        wall, cpu, allocations, peak_rss = meter.read()
        sample = Sample(wall=wall, cpu=cpu, ops=len(latency), latency=latency, peak_rss=peak_rss)
        sample.allocations = allocations
        return sample.answer()

    def close(self) -> None:
        """Ends."""


def children() -> int:
    """CPU time of processes that have ended, in nanoseconds."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((spent.ru_utime + spent.ru_stime) * 1e9)
