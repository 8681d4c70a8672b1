"""The block of a job: warm-up, clocks, loop."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

from kit.clock import Meter
from kit.job import Job, unsupported
from kit.peer import AsyncPeer, Config, Peer, Setup
from kit.tally import Sink, Tally

SLOW = os.environ.get("MIMUS_BENCH_SLOW") == "1"
"""Whether each exchange is made 2 us slower, to see that a comparison sees it."""


def slow_down() -> None:
    """Allocates once more and waits 2 us."""
    bytearray(64)
    until = time.monotonic_ns() + 2_000
    while time.monotonic_ns() < until:
        pass


def refusal(peer: Peer | AsyncPeer, setup: Setup, job: Job) -> str | None:
    """Why `peer` cannot do `job`, if so."""
    if why := job.unsupported():
        return why
    if setup.http2 and peer.http2 is not None:
        return peer.http2
    if job.deliver == "sink" and peer.stream is None:
        return "it cannot give out a body in pieces"
    return None


class Blocking:
    """A client that blocks, and can be given jobs."""

    def __init__(self, config: Config, setup: Setup) -> None:
        self.make: Callable[[Setup], Peer] = config.make  # type: ignore[assignment]
        self.setup = setup
        self.peer = self.make(setup)

    def answer(self, job: Job) -> dict[str, Any]:
        """Does `job`."""
        if job.in_flight > 1:
            return unsupported("it blocks: one exchange at a time")
        if why := refusal(self.peer, self.setup, job):
            return unsupported(why)
        warm_up, block = Tally(job, job.warm_up), Tally(job, job.ops)
        self.run(warm_up)
        gc.collect()
        meter = Meter()
        self.run(block)
        return block.sample(meter, warm_up).answer()

    def run(self, tally: Tally) -> None:
        job = tally.job
        if job.cold:
            self.run_cold(tally)
        elif job.deliver == "sink":
            self.run_sink(tally)
        elif job.sent() is not None:
            self.run_whole(tally, self.peer.post, (job.url, b"m" * (job.sent() or 0)))
        else:
            self.run_whole(tally, self.peer.get, (job.url,))

    def run_whole(self, tally: Tally, exchange: Callable[..., Any], ask: tuple[Any, ...]) -> None:
        now = time.monotonic_ns
        for _ in tally.numbers:
            began = now()
            if SLOW:
                slow_down()
            try:
                status, body = exchange(*ask)
            except Exception as error:
                tally.fail(error)
                continue
            tally.keep(began, now(), status, len(body))

    def run_sink(self, tally: Tally) -> None:
        now, sink, stream, url = time.monotonic_ns, Sink(), self.peer.stream, tally.job.url
        assert stream is not None
        for _ in tally.numbers:
            sink.begin()
            began = now()
            try:
                status = stream(url, sink)
            except Exception as error:
                tally.fail(error)
                continue
            tally.keep(began, now(), status, sink.size)
            if sink.first:
                tally.first_byte.append(sink.first - began)

    def run_cold(self, tally: Tally) -> None:
        """A client for each exchange, within the timed part."""
        now, url = time.monotonic_ns, tally.job.url
        for _ in tally.numbers:
            began = now()
            try:
                peer = self.make(self.setup)
                status, body = peer.get(url)
                peer.close()
            except Exception as error:
                tally.fail(error)
                continue
            tally.keep(began, now(), status, len(body))

    def close(self) -> None:
        """Ends."""
        self.peer.close()


class OnLoop:
    """A client on asyncio, and can be given jobs."""

    def __init__(self, config: Config, setup: Setup) -> None:
        assert config.loop is not None
        self.make: Callable[[Setup], AsyncPeer] = config.make  # type: ignore[assignment]
        self.setup = setup
        self.loop = config.loop()
        asyncio.set_event_loop(self.loop)
        self.peer = self.loop.run_until_complete(self.open())

    async def open(self) -> AsyncPeer:
        peer = self.make(self.setup)
        await peer.open()
        return peer

    def answer(self, job: Job) -> dict[str, Any]:
        """Does `job`."""
        if why := refusal(self.peer, self.setup, job):
            return unsupported(why)
        return self.loop.run_until_complete(self.measure(job))

    async def measure(self, job: Job) -> dict[str, Any]:
        warm_up, block = Tally(job, job.warm_up), Tally(job, job.ops)
        await self.run(warm_up)
        gc.collect()
        meter = Meter()
        await self.run(block)
        return block.sample(meter, warm_up).answer()

    async def run(self, tally: Tally) -> None:
        if tally.job.in_flight == 1:
            await self.lane(tally)
        else:
            await asyncio.gather(*(self.lane(tally) for _ in range(tally.job.in_flight)))

    def lane(self, tally: Tally) -> Awaitable[None]:
        """One exchange after the other."""
        job = tally.job
        if job.cold:
            return self.lane_cold(tally)
        if job.deliver == "sink":
            return self.lane_sink(tally)
        if job.sent() is not None:
            return self.lane_whole(tally, self.peer.post, (job.url, b"m" * (job.sent() or 0)))
        return self.lane_whole(tally, self.peer.get, (job.url,))

    async def lane_whole(self, tally: Tally, exchange: Callable[..., Any], ask: tuple[Any, ...]) -> None:
        now = time.monotonic_ns
        for _ in tally.numbers:
            began = now()
            if SLOW:
                slow_down()
            try:
                status, body = await exchange(*ask)
            except Exception as error:
                tally.fail(error)
                continue
            tally.keep(began, now(), status, len(body))

    async def lane_sink(self, tally: Tally) -> None:
        now, sink, stream, url = time.monotonic_ns, Sink(), self.peer.stream, tally.job.url
        assert stream is not None
        for _ in tally.numbers:
            sink.begin()
            began = now()
            try:
                status = await stream(url, sink)
            except Exception as error:
                tally.fail(error)
                continue
            tally.keep(began, now(), status, sink.size)
            if sink.first:
                tally.first_byte.append(sink.first - began)

    async def lane_cold(self, tally: Tally) -> None:
        now, url = time.monotonic_ns, tally.job.url
        for _ in tally.numbers:
            began = now()
            try:
                peer = await self.open()
                status, body = await peer.get(url)
                await peer.close()
            except Exception as error:
                tally.fail(error)
                continue
            tally.keep(began, now(), status, len(body))

    def close(self) -> None:
        """Ends."""
        self.loop.run_until_complete(self.peer.close())
