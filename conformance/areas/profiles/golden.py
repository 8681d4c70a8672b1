"""What `mimus --as` sends, against what was captured from the browser of that name."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import partial

from harness.checks import Book, Failed, Skipped, expect, expect_eq
from harness.lab import Lab

from areas.profiles import wire
from areas.profiles.facts import BUILDS, HERE, Build, ech_of
from areas.profiles.hello import GREASE, PSK, Hello
from areas.profiles.servers import H1, H2, Record, Recorder, port_of

book = Book()

CONNECTIONS, QUICK = 50, 10

# What a build is known to do otherwise. Such a check must fail: when it passes, its line goes.
KNOWN = {
    "WebSocket hello": (
        [build.name for build in BUILDS if build.is_firefox],
        "Firefox offers h2 and http/1.1 for a WebSocket to a host that it has no connection to; here it is "
        "http/1.1 alone",
    ),
}


def each_build(what: str, has: Callable[[Build], bool] = lambda _: True) -> Callable:
    """Adds a check for each build of which this is known."""

    def add(run: Callable) -> Callable:
        for build in filter(has, BUILDS):
            book.check(f"{build.name}: {what}", "go-capture")(partial(run_known, run, what, build))
        return run

    return add


def run_known(run: Callable, what: str, build: Build, lab: Lab) -> None:
    names, reason = KNOWN.get(what, ((), ""))
    if build.name not in names:
        return run(lab, build)
    try:
        run(lab, build)
    except Failed:
        raise Skipped(f"known to differ: {reason}") from None
    raise Failed("does not differ any more: take it out of KNOWN")


def recorder(lab: Lab) -> Recorder:
    return lab.server("go-capture")


def asking(lab: Lab, build: Build, url: str, at: str, *args: str) -> list[Record]:
    """What one run sends. Its connections end with it, at the latest."""
    to = recorder(lab)
    to.rest()
    authority = url.split("/")[2]
    run = lab.client.run(
        *args, *to.trust(), "--as", build.profile, "--resolve", f"{authority}:{at}", url
    )
    if "ws" not in args:
        run.expect_code(0)
    return to.take(1)


def hellos(lab: Lab, build: Build) -> list[Record]:
    """Many connections, each of a process of its own, so that none resumes another's session."""
    cache = lab.__dict__.setdefault("hellos", {})
    if build.name not in cache:
        url = f"https://a.test:{recorder(lab).port['h2']}/"
        count = QUICK if lab.quick else CONNECTIONS
        cache[build.name] = [asking(lab, build, url, "127.0.0.1", "-sS")[0] for _ in range(count)]
    return cache[build.name]


def expect_hello(hello: Hello, build: Build, scenario: str) -> None:
    """Every field, every print, the order, and the length of GREASE ECH."""
    theirs = build.hellos[scenario]
    for what, value in theirs["shape"].items():
        # Through JSON, as the facts went.
        expect_eq(what, json.loads(json.dumps(hello.shape.get(what))), value)
    expect_eq("fields of the hello", sorted(hello.shape), sorted(theirs["shape"]))
    for what in ("ja4", "ja3n", "peetprint"):
        expect_eq(what, getattr(hello, what), theirs[what])
    expect_order(hello, build, scenario)
    expect(hello.ech in ech_of(build, scenario), f"GREASE ECH of {hello.ech}, which the browser does not send")


def expect_order(hello: Hello, build: Build, scenario: str) -> None:
    if build.is_firefox:
        expect_eq("order of extensions", hello.order, theirs_of(build, scenario))
        return
    # Chromium permutes what stands between: GREASE is first and last, a session behind all.
    inner = [each for each in hello.order if each != PSK]
    expect(inner[0] == inner[-1] == GREASE and inner.count(GREASE) == 2, f"GREASE stands elsewhere: {hello.order}")
    expect(PSK not in hello.order[:-1], f"the session is not last: {hello.order}")


def theirs_of(build: Build, scenario: str) -> list:
    return build.hellos[scenario]["order"]


@each_build("JA4, JA3N, peetprint")
def prints(lab, build):
    theirs = build.hellos["h2"]
    for record in hellos(lab, build):
        for what in ("ja4", "ja3n", "peetprint"):
            expect_eq(what, getattr(record.hello, what), theirs[what])


@each_build("fields, GREASE")
def fields(lab, build):
    captured = build.raw("h2")
    expect(captured is not None, "its ClientHello is not among the captures")
    found = hellos(lab, build)
    expect_eq("what the facts say of the capture", json.loads(json.dumps(captured.shape)), build.hellos["h2"]["shape"])
    for record in found:
        expect_hello(record.hello, build, "h2")
    if not build.is_firefox:
        drawn = {record.hello.ciphers[0] for record in found}
        expect(len(drawn) > 1, f"all {len(found)} have the same GREASE")


@each_build("order")
def order(lab, build):
    found = hellos(lab, build)
    for record in found:
        expect_order(record.hello, build, "h2")
    orders = {tuple(record.hello.order) for record in found}
    expect_eq("orders", len(orders), 1 if build.is_firefox else len(found))


@each_build("GREASE ECH")
def ech(lab, build):
    found = [record.hello.ech for record in hellos(lab, build)]
    allowed = ech_of(build, "h2")
    for its in found:
        expect(its in allowed, f"{its}, which the browser does not send")
    # Few connections may well draw the same one of two.
    if not build.is_firefox or len(found) >= CONNECTIONS:
        expect(len(set(found)) > 1, f"all {len(found)} are {found[0]}, the browser's vary")


@each_build("ja4plus")
def judged(lab, build):
    raw = build.raw("h2")
    ours = [record.raw for record in hellos(lab, build)]
    texts = judge(lab)[build.name]
    expect_eq("JA4s", len(texts), len(ours) + 1)
    expect(raw is not None and texts[-1].startswith("t13d"), f"of the capture ja4plus says {texts[-1]}")
    for text in texts:
        expect_eq("JA4", text, texts[-1])


def judge(lab: Lab) -> dict[str, list[str]]:
    """What ja4plus says of all hellos, those captured last; asked once, as it takes its time to begin."""
    python = lab.tools.parent / "ja4plus" / "bin" / "python"
    if not python.exists():
        raise Skipped("ja4plus is not installed")
    if "judged" not in lab.__dict__:
        names, lines = [], []
        for build in BUILDS:
            captured = (HERE.parents[2] / "crates/proto/tests/data/hellos" / f"{build.name}.bin").read_bytes()
            for raw in [*(record.raw for record in hellos(lab, build)), captured]:
                names.append(build.name)
                lines.append(raw.hex())
        done = subprocess.run(
            [python, HERE / "judge.py"], input="\n".join(lines), capture_output=True, text=True, timeout=120
        )
        if done.returncode != 0:
            raise Failed(f"ja4plus: {(done.stderr.strip().splitlines() or ['no reason'])[-1]}")
        lab.judged = {build.name: [] for build in BUILDS}
        for name, text in zip(names, done.stdout.split(), strict=True):
            lab.judged[name].append(text)
    return lab.judged


@each_build("mimus fingerprint")
def own_reader(lab, build):
    run = lab.client.run("fingerprint", "--jsonl", "--as", build.profile, "https://a.test/").expect_code(0)
    told = json.loads(run.out)["tls"]
    for what in ("ja4", "ja3n", "peetprint"):
        expect_eq(what, told[what]["hash"] if isinstance(told[what], dict) else told[what], build.hellos["h2"][what])


@each_build("resumed hello", lambda build: "resumed" in build.hellos)
def resumed(lab, build):
    to = recorder(lab)
    to.rest()
    url = f"https://a.test:{to.port['h2']}/close"
    lab.client.run(
        "-sS", *to.trust(), "--as", build.profile, "--resolve", f"{url.split('/')[2]}:127.0.0.1", url, url
    ).expect_code(0)
    first, second = to.take(2)
    expect(not first.resumed and second.resumed, "the second connection does not resume the first one's session")
    expect_hello(first.hello, build, "h2")
    expect_hello(second.hello, build, "resumed")


@each_build("hello to an address", lambda build: "address" in build.hellos)
def address(lab, build):
    to = recorder(lab)
    to.rest()
    url = f"https://127.0.0.1:{to.port['h2']}/"
    lab.client.run("-sS", *to.trust(), "--as", build.profile, url).expect_code(0)
    expect_hello(to.take(1)[0].hello, build, "address")


def dressed(build: Build, captured: dict[str, str]) -> list[str]:
    """The flags for what a headless browser says of itself, and others do not."""
    by_name = {name.lower(): value for name, value in captured.items()}
    flags = []
    if "HeadlessChrome" in by_name["user-agent"]:
        flags += ["-H", f"User-Agent: {by_name['user-agent']}"]
    if "HeadlessChrome" in by_name.get("sec-ch-ua", ""):
        flags += ["-H", f"sec-ch-ua: {by_name['sec-ch-ua']}"]
    if "accept-language" not in by_name:
        flags += ["-H", "Accept-Language:"]
    return flags


def over_h2(lab: Lab, build: Build, what: str, *args: str) -> None:
    captured = build.http[what]
    fields = dict(captured["headers"])
    url = f"https://{fields[':authority']}{fields[':path']}"
    (record,) = asking(lab, build, url, H2, "-sS", *args, *dressed(build, fields))
    ours = wire.first_flight(wire.frames(record.app))
    wire.expect_frames(ours, [bytes.fromhex(frame) for frame in captured["frames"]])


@each_build("HTTP/2, page", lambda build: "navigate" in build.http)
def navigate(lab, build):
    over_h2(lab, build, "navigate")


@each_build("HTTP/2, fetch()", lambda build: "fetch" in build.http)
def fetch(lab, build):
    page = dict(build.http["fetch"]["headers"])["referer"]
    over_h2(lab, build, "fetch", "--kind", "fetch", "-e", page)


def fields_of(lines: list[str]) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in lines[1:])


@each_build("HTTP/1.1", lambda build: "h1" in build.http)
def http1(lab, build):
    theirs = build.http["h1"]
    fields = fields_of(theirs)
    url = f"https://{fields['Host']}{theirs[0].split(' ')[1]}"
    (record,) = asking(lab, build, url, H1, "-sS", *dressed(build, fields))
    wire.expect_lines(wire.head(record.app), theirs)


@each_build("HTTP/1.1 in the clear", lambda build: "plain" in build.http)
def in_the_clear(lab, build):
    theirs = build.http["plain"]
    fields = fields_of(theirs)
    url = f"http://{fields['Host']}{theirs[0].split(' ')[1]}"
    (record,) = asking(lab, build, url, H1, "-sS", *dressed(build, fields))
    wire.expect_lines(wire.head(record.app), theirs)


def websocket(lab: Lab, build: Build) -> Record:
    """Begins the WebSocket that was captured; the recorder refuses it."""
    cache = lab.__dict__.setdefault("websockets", {})
    if build.name not in cache:
        theirs = build.http["websocket"]
        fields = fields_of(theirs)
        url = f"wss://{fields['Host']}{theirs[0].split(' ')[1]}"
        said = ["--origin", fields["Origin"], "--subprotocol", fields["Sec-WebSocket-Protocol"]]
        said += ["-b", fields["Cookie"]] if "Cookie" in fields else []
        (cache[build.name],) = asking(lab, build, url, H1, "ws", *said, *dressed(build, fields))
    return cache[build.name]


@each_build("WebSocket hello", lambda build: "websocket" in build.hellos)
def websocket_tls(lab, build):
    expect_hello(websocket(lab, build).hello, build, "websocket")


@each_build("WebSocket", lambda build: "websocket" in build.http)
def websocket_head(lab, build):
    ours = wire.head(websocket(lab, build).app)
    wire.expect_lines(wire.keyless(ours), wire.keyless(build.http["websocket"]))
