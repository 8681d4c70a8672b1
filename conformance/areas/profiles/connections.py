"""Which connections are opened, when, and what each of them is for: by the browsers that are installed here, and by
the profiles of their version, or of the one nearest below.

As a program it tells what a browser does with a page: `connections.py chromium h1 /alone --for 10`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import quote

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from areas.profiles import browser  # noqa: E402
from areas.profiles.facts import Build  # noqa: E402
from areas.profiles.golden import patched, recorder, with_profiles  # noqa: E402
from areas.profiles.servers import Recorder  # noqa: E402
from harness.checks import Book, Failed, expect, expect_eq  # noqa: E402
from harness.lab import Lab  # noqa: E402

book = Book()

VISITS = 4
"""How often a browser is asked: which of two handshakes is over first is chance, and so is what follows from it."""

SETTLED = 1.5
"""Seconds after which a browser has opened what it opens beside a page."""


@dataclass
class Connection:
    """Times are in microseconds, of the recorder's clock."""

    listener: str
    accepted: int
    hello: int | None = None
    secured: int | None = None
    ended: int | None = None
    alpn: str = ""
    resumed: bool = False
    asked: list[tuple[int, str]] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return [path for _, path in self.asked]


def connections(to: Recorder, after: int = 0) -> dict[int, Connection]:
    """All that were accepted behind the first so many, by their number."""
    found: dict[int, Connection] = {}
    for line in (to.records / "events.jsonl").read_text().splitlines(keepends=True):
        # The last one may be on its way.
        if not line.endswith("\n"):
            continue
        event = json.loads(line)
        number, what, at = event["conn"], event["what"], event["at"]
        if number <= after:
            continue
        if what == "accepted":
            found[number] = Connection(event["listener"], at)
        elif what == "asked":
            found[number].asked.append((at, event["path"]))
        else:
            setattr(found[number], what, at)
            if what == "secured":
                found[number].alpn, found[number].resumed = event.get("alpn", ""), event.get("resumed", False)
    return found


def told(found: dict[int, Connection]) -> str:
    """A line a connection, in milliseconds since the first one."""
    if not found:
        return "none"
    first = min(its.accepted for its in found.values())

    def ms(at: int | None) -> str:
        return "never" if at is None else f"{(at - first) / 1000:.1f}"

    lines = []
    for number, its in found.items():
        asked = ", ".join(f"{path} {ms(at)}" for at, path in its.asked) or "nothing"
        tls = f", hello {ms(its.hello)}, secured {ms(its.secured)} {its.alpn}{' resumed' if its.resumed else ''}"
        lines.append(
            f"{number} {its.listener}: accepted {ms(its.accepted)}{'' if its.listener == 'plain' else tls}, "
            f"asked {asked}, ended {ms(its.ended)}"
        )
    return "\n".join(lines)


def page(to: Recorder, listener: str, path: str) -> str:
    return f"{'http' if listener == 'plain' else 'https'}://a.test:{to.port[listener]}{path}"


def visited(lab: Lab, kind: str, url: str, until: str, settled: float = 0, flags: Iterable[str] = ()) -> dict[int, Connection]:
    """The connections of a browser that is shown this page until it has asked for that path."""
    to = recorder(lab)
    before = max(connections(to), default=0)
    path = browser.program(*browser.PROGRAMS[kind])
    with browser.opened(lab, kind, path, url, *flags) as process:
        browser.wait(process, kind, lambda: any(until in its.paths for its in connections(to, before).values()))
        time.sleep(settled)
        return connections(to, before)


def shape(found: Iterable[Connection], listener: str, until: int | None = None) -> dict[str, int]:
    """How many connections there were by then, how many were ready for use, and used. Whether one that is not needed is
    ended at once is chance in Chromium."""

    def by_then(at: int | None) -> bool:
        return at is not None and (until is None or at < until)

    own = [its for its in found if its.listener == listener and by_then(its.accepted)]
    return {
        "opened": len(own),
        "secured": sum(by_then(its.secured) for its in own),
        "used": sum(any(by_then(at) for at, _ in its.asked) for its in own),
    }


def ours(lab: Lab, build: Build, listener: str) -> dict[str, int]:
    """The same of the profile: until the third request, behind a second one that takes its time."""
    to = recorder(lab)
    before = max(connections(to), default=0)
    urls = [page(to, listener, path) for path in ("/alone", "/slow", "/alone")]
    authority = urls[0].split("/")[2]
    args = ("-sS", *to.trust(), "--as", build.profile, "--resolve", f"{authority}:127.0.0.1", *urls)
    patched(lab.client.run(*args)).expect_code(0)
    found = connections(to, before)
    asked = sorted(at for its in found.values() for at, _ in its.asked)
    expect_eq("requests", len(asked), len(urls))
    return shape(found.values(), listener, asked[-1])


def says(lab: Lab, build: Build) -> dict:
    """What the profile says of connections."""
    shown = lab.client.run("profile", "show", build.profile).expect_code(0).out
    return tomllib.loads(shown.decode()).get("connections", {})


def each(what: str):
    def add(run):
        for kind in browser.PROGRAMS:
            book.check(f"live {kind}: {what}", "go-capture", slow=True)(partial(of_browser, run, kind))
        return run

    return add


def of_browser(run, kind: str, lab: Lab) -> None:
    from areas.profiles.live import nearest

    with_profiles(lab)
    path = browser.program(*browser.PROGRAMS[kind])
    run(lab, kind, nearest(kind, browser.version(path)))


def alike(lab: Lab, kind: str, build: Build, listener: str) -> None:
    """A page of a host that there is no connection to yet, from another host's page: the browser has been running."""
    mine, theirs, to = ours(lab, build, listener), [], recorder(lab)
    by = "plain" if listener == "h1" else "h1"
    url = page(to, by, f"/next?{quote(page(to, listener, '/alone'), safe='')}").replace("a.test", "b.test")
    for _ in range(VISITS):
        theirs.append(shape(visited(lab, kind, url, "/alone", SETTLED).values(), listener))
        if theirs[-1] == mine:
            return
    raise Failed(f"{mine} instead of {' or '.join(map(str, theirs))}")


for _listener, _name in (("h2", "HTTP/2"), ("h1", "HTTP/1.1"), ("plain", "HTTP/1.1 in the clear")):
    each(f"connections of a page, {_name}")(lambda lab, kind, build, listener=_listener: alike(lab, kind, build, listener))


@each("connections to a host at a time")
def at_a_time(lab, kind, build):
    found = visited(lab, kind, page(recorder(lab), "h1", "/many"), "/done")
    used = [its for its in found.values() if "/slow" in its.paths]
    expect_eq("connections", says(lab, build).get("per_host"), len(used))


@each("which requests share connections")
def sharing(lab, kind, build):
    apart = says(lab, build).get("apart", [])
    for listener in ("h1", "h2"):
        found = visited(lab, kind, page(recorder(lab), listener, "/apart"), "/done").values()
        place = {path: at for at, its in enumerate(found) for path in its.paths}
        anonymous = place["/without"] != place["/with"]
        wanted = "anonymous" in apart or "anonymous-http1" in apart and listener == "h1"
        expect_eq(f"{listener}: requests without credentials are apart", wanted, anonymous)
        expect_eq(f"{listener}: they share", place["/without"], place["/without-again"])
        expect(place["/with"] == place["/with-again"] == place["/done"], f"{listener}: the others do not share")
        websocket = place["/ws"] not in (place["/with"], place["/without"])
        expect_eq(f"{listener}: a WebSocket is apart", "websocket" in apart, websocket)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("browser", choices=browser.PROGRAMS)
    parser.add_argument("listener", choices=("h2", "h1", "plain"))
    parser.add_argument("path", help="the page to show")
    parser.add_argument("--by", choices=("h2", "h1", "plain"), help="by way of another host's page that leads to it")
    parser.add_argument("--away", action="store_true", help="have that page redirect at once")
    parser.add_argument("--for", dest="seconds", type=float, default=5, help="how long (default: %(default)s)")
    parser.add_argument("--flag", action="append", default=[], help="one of the browser's own")
    options = parser.parse_args(arguments)
    lab = Lab("connections", Path("target").resolve(), sys.executable)
    try:
        lab.start([Recorder])
        lab.require("go-capture")
        to = recorder(lab)
        url = page(to, options.listener, options.path)
        if options.by:
            leads = "/away" if options.away else "/next"
            url = page(to, options.by, f"{leads}?{quote(url, safe='')}").replace("//a.test", "//b.test", 1)
        print(told(visited(lab, options.browser, url, options.path, options.seconds, options.flag)))
    finally:
        lab.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
