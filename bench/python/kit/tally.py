"""What the exchanges of a block come to."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

from kit.clock import Meter
from kit.job import Job, Sample
from kit.peer import Piece


class Tally:
    """Gives out the exchanges of a block, and keeps what each took."""

    __slots__ = ("body", "bytes", "failures", "first_byte", "job", "latency", "moved", "numbers", "ops")

    def __init__(self, job: Job, ops: int) -> None:
        self.job = job
        self.ops = ops
        self.body = job.body
        self.moved = job.body + (job.sent() or 0)
        self.numbers: Iterator[int] = iter(range(ops))
        self.latency: list[int] = []
        self.first_byte: list[int] = []
        self.bytes = 0
        self.failures: Counter[str] = Counter()

    def keep(self, began: int, ended: int, status: int, size: int) -> None:
        """An exchange ended, with a body of so many bytes."""
        if status != 200:
            self.failures[f"status {status}"] += 1
        elif size != self.body:
            self.failures[f"a body of {size} bytes instead of {self.body}"] += 1
        else:
            self.latency.append(ended - began)
            self.bytes += self.moved

    def fail(self, error: BaseException) -> None:
        """An exchange failed."""
        self.failures[f"{type(error).__name__}: {error}"] += 1

    def sample(self, meter: Meter, warm_up: Tally) -> Sample:
        """What the block cost, which ends now."""
        wall, cpu, allocations, peak_rss = meter.read()
        failures = list(self.failures.items())
        lost = self.ops - len(self.latency) - self.failures.total()
        if lost:
            failures.append(("never ended", lost))
        failures += [(f"warm-up: {text}", n) for text, n in warm_up.failures.items()]
        return Sample(
            wall=wall,
            cpu=cpu,
            ops=len(self.latency),
            bytes=self.bytes,
            latency=self.latency,
            first_byte=self.first_byte,
            allocations=allocations,
            peak_rss=peak_rss,
            failures=failures,
        )


class Sink:
    """What takes the pieces of one body after the other."""

    __slots__ = ("first", "size")

    def begin(self) -> None:
        """A body is about to come."""
        self.first = 0
        self.size = 0

    def __call__(self, piece: Piece) -> None:
        """A piece came; an empty one is none."""
        size = len(piece)
        if size:
            if not self.first:
                self.first = time.monotonic_ns()
            self.size += size
