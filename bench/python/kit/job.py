"""What runner and client say to each other: see `bench/kit/src/job.rs`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Job:
    """A block of exchanges to make and to measure."""

    url: str
    ops: int
    in_flight: int
    upload: Any
    deliver: Any
    body: int
    cold: bool
    rate: float | None
    warm_up: int

    @classmethod
    def read(cls, line: str) -> Job:
        """The job in a line."""
        return cls(**json.loads(line))

    def sent(self) -> int | None:
        """Bytes of the body of known length that each exchange sends; None for a GET."""
        return self.upload["known"] if isinstance(self.upload, dict) else None

    def unsupported(self) -> str | None:
        """Why nothing in Python is given such a job, if so."""
        if self.upload != "none" and not (isinstance(self.upload, dict) and "known" in self.upload):
            return "the bench's kit in Python has no such upload"
        if self.deliver not in ("bytes", "sink"):
            return "the bench's kit in Python has no such delivery"
        if self.rate is not None:
            return "the bench's kit in Python keeps no schedule"
        return None


@dataclass(slots=True)
class Sample:
    """What a block cost. Times are in nanoseconds."""

    wall: int = 0
    cpu: int = 0
    ops: int = 0
    bytes: int = 0
    latency: list[int] = field(default_factory=list)
    first_byte: list[int] = field(default_factory=list)
    delay: list[int] = field(default_factory=list)
    allocations: dict[str, int] | None = None
    peak_rss: int = 0
    failures: list[tuple[str, int]] = field(default_factory=list)

    def answer(self) -> dict[str, Any]:
        """The answer that it is."""
        return {"sample": asdict(self)}


def unsupported(why: str) -> dict[str, Any]:
    """The answer to a job that the client has no way to do."""
    return {"unsupported": why}
