"""The browsers that are installed here, against the profiles of their version, or of the one nearest below."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial

from harness.checks import Book, Failed, Skipped, expect
from harness.lab import Lab

from areas.profiles import browser, wire
from areas.profiles.facts import BUILDS, Build, ech_of
from areas.profiles.golden import asking, expect_order, fields_of, look, recorder, with_profiles
from areas.profiles.servers import WAIT, Record

book = Book()

PROGRAMS = {"chromium": ("chromium", "chromium-browser"), "firefox": ("firefox-esr", "firefox")}


def each_browser(what: str) -> Callable:
    def add(run: Callable) -> Callable:
        for kind in PROGRAMS:
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
    path = browser.program(*PROGRAMS[kind])
    build = nearest(kind, browser.version(path))
    url = f"https://a.test:{recorder(lab).port[listener]}/"
    if (kind, listener) not in cache:
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


@each_browser("ClientHello")
def hello(lab, kind):
    build, _, _ = seen(lab, kind, "h2")
    our, its = ours(lab, kind, "h2")
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


def flight(record):
    """Its frames to the first request. Firefox connects before it knows what to ask: when Go's SETTINGS are there
    first, it confirms their size of the table, which who asks at once cannot know."""
    frames = wire.first_flight(wire.frames(record.app))
    if wire.settings_were_known(record.app):
        return [wire.without_size_updates(frame) for frame in frames]
    return frames


@each_browser("HTTP/2, page")
def over_h2(lab, kind):
    our, its = ours(lab, kind, "h2")
    wire.expect_frames(flight(our), flight(its))


@each_browser("HTTP/1.1")
def over_h1(lab, kind):
    our, its = ours(lab, kind, "h1")
    differing = wire.differences(wire.head(our.app), wire.head(its.app))
    expect(not differing, "; ".join(differing))
