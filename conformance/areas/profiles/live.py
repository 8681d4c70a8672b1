"""The browsers that are installed here, against the profiles of their version, or of the one nearest below."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from harness.checks import Book, Failed, Skipped, expect
from harness.lab import Lab

from areas.profiles import browser, wire
from areas.profiles.facts import BUILDS, Build, ech_of
from areas.profiles.golden import asking, expect_order, fields_of, look, patched, recorder, with_profiles
from areas.profiles.servers import WAIT, Record

book = Book()

VISITS = 4
"""How often a browser is asked: of the connections that it opens at once one may resume another's session, by chance
that which asks."""


def each_browser(what: str) -> Callable:
    def add(run: Callable) -> Callable:
        for kind in browser.PROGRAMS:
            book.check(f"live {kind}: {what}", "go-capture", slow=True)(partial(run, kind=kind))
        return run

    return add


def nearest(kind: str, version: int) -> Build:
    known = {int(build.name.split("-")[1]): build for build in BUILDS if build.name.startswith(kind)}
    below = [number for number in known if number <= version]
    if not below:
        raise Skipped(f"{kind} {version} is older than all profiles")
    return known[max(below)]


def seen(lab: Lab, kind: str, listener: str) -> tuple[Build, Record, str]:
    """What the browser sent when it asked for the page, the build it is, and the page."""
    with_profiles(lab)
    cache = lab.__dict__.setdefault("live", {})
    path = browser.program(*browser.PROGRAMS[kind])
    build = nearest(kind, browser.version(path))
    url = f"https://a.test:{recorder(lab).port[listener]}/"
    for _ in range(VISITS):
        if (kind, listener) in cache and not cache[kind, listener].resumed:
            break
        recorder(lab).rest()
        browser.visit(lab, kind, path, url)
        cache[kind, listener] = page_among(lab, listener)
    return build, cache[kind, listener], url


def page_among(lab: Lab, listener: str) -> Record:
    """The connection that asked for the page: browsers open others too, and close them when they like."""
    until = time.monotonic() + WAIT
    while True:
        for record in recorder(lab).rest():
            begins = wire.PREFACE if listener == "h2" else b"GET / "
            if record.listener == listener and record.app.startswith(begins) and asks(record, listener):
                return record
        if time.monotonic() > until:
            raise Failed("the connection that asked for the page did not end")
        time.sleep(0.02)


def asks(record: Record, listener: str) -> bool:
    return listener == "h1" or any(frame[3] == wire.HEADERS for frame in wire.frames(record.app))


def ours(lab: Lab, kind: str, listener: str) -> tuple[Record, Record]:
    """What we send for the same page, and what the browser did. The fields that say how the browser was started
    are in clear text over HTTP/1.1."""
    build, its, url = seen(lab, kind, listener)
    _, over_h1, _ = seen(lab, kind, "h1")
    fields = fields_of(wire.head(over_h1.app))
    return asking(lab, look(lab, build, fields), url, "127.0.0.1", "-sS"), its


def expect_hello(build: Build, our: Record, its: Record) -> None:
    """Field by field."""
    mine, theirs = our.hello.shape, its.hello.shape
    differing = [
        f"{name}: {json.dumps(mine.get(name))} instead of {json.dumps(theirs.get(name))}"
        for name in dict.fromkeys([*mine, *theirs])
        if mine.get(name) != theirs.get(name)
    ]
    for what in ("ja4", "ja3n", "peetprint"):
        if getattr(our.hello, what) != getattr(its.hello, what):
            differing.append(f"{what}: {getattr(our.hello, what)} instead of {getattr(its.hello, what)}")
    expect(not differing, "; ".join(differing))
    for one in (our.hello, its.hello):
        expect_order(one, build, "h2")
        expect(one.ech in ech_of(build, "h2"), f"GREASE ECH of {one.ech}")


def flight(record: Record) -> list[bytes]:
    """Its frames to the first request. Firefox connects before it knows what to ask: when Go's SETTINGS are there
    first, it confirms their size of the table, which who asks at once cannot know."""
    frames = wire.first_flight(wire.frames(record.app))
    if wire.settings_were_known(record.app):
        return [wire.without_size_updates(frame) for frame in frames]
    return frames


def expect_http2(our: Record, its: Record) -> None:
    wire.expect_frames(flight(our), flight(its))


def expect_http1(our: Record, its: Record) -> None:
    differing = wire.differences(wire.head(our.app), wire.head(its.app))
    expect(not differing, "; ".join(differing))


@each_browser("ClientHello")
def hello(lab, kind):
    build, _, _ = seen(lab, kind, "h2")
    expect_hello(build, *ours(lab, kind, "h2"))


@each_browser("HTTP/2, page")
def over_h2(lab, kind):
    expect_http2(*ours(lab, kind, "h2"))


@each_browser("HTTP/1.1")
def over_h1(lab, kind):
    expect_http1(*ours(lab, kind, "h1"))


CAPTURE_PATIENCE = 240.0
"""Seconds that `mimus profile capture` may take with a browser of its own."""

PSK_LENGTHS = re.compile(r"payload_lengths_with_psk = \[[^]]*\],? ?")


def capture(lab: Lab, kind: str) -> tuple[Build, Path, str]:
    """A profile's file by `mimus profile capture` from the browser, and the command's report."""
    with_profiles(lab)
    cache = lab.__dict__.setdefault("captured", {})
    path = browser.program(*browser.PROGRAMS[kind])
    version = browser.version(path)
    build = nearest(kind, version)
    if build.name != f"{kind}-{version}":
        raise Skipped(f"no profile of {kind} {version} is shipped")
    if kind not in cache:
        file = lab.scratch() / "captured.toml"
        args = ("profile", "capture", "--browser", path, "--out", file)
        run = patched(lab.client.run(*args, hang=CAPTURE_PATIENCE)).expect_code(0)
        cache[kind] = file, run.err
    return build, *cache[kind]


@each_browser("profile capture says what is shipped")
def reproduces(lab, kind):
    build, _, report = capture(lab, kind)
    expect(f"mimus: the nearest profile is {build.profile}\n" in report, f"another is nearest: {report[-600:]}")
    differing: dict[str, dict[str, str]] = {}
    for mark, place, value in re.findall(r"^([-+]) (\S+) = (.*)$", report, re.MULTILINE):
        differing.setdefault(place, {})[mark] = value
    # Firefox hides a hello that tells the ticket's length, and this server's tickets are not those of the other.
    ech = differing.get("tls.ech_grease", {})
    if build.is_firefox and len({PSK_LENGTHS.sub("", value) for value in ech.values()}) == 1:
        del differing["tls.ech_grease"]
    told = (f"{place}: {its.get('+')} instead of {its.get('-')}" for place, its in differing.items())
    expect(not differing, "; ".join(told))


@each_browser("profile capture sends what the browser sends")
def replays(lab, kind):
    build, file, _ = capture(lab, kind)
    for listener, check in (("h2", partial(expect_hello, build)), ("h2", expect_http2), ("h1", expect_http1)):
        _, its, url = seen(lab, kind, listener)
        _, over_h1, _ = seen(lab, kind, "h1")
        # A headless browser says so; the file says what one with a window does.
        fields = fields_of(wire.head(over_h1.app))
        own = [f"{name}: {value}" for name, value in fields.items() if "HeadlessChrome" in value]
        headers = [word for line in own for word in ("-H", line)]
        check(asking(lab, str(file), url, "127.0.0.1", "-sS", *headers), its)
