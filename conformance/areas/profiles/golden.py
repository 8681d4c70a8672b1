"""What `mimus --as` sends, against what was captured from the browser of that name."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from functools import partial

from harness.checks import Book, Failed, Skipped, expect, expect_eq
from harness.client import Run
from harness.lab import Lab

from areas.profiles import wire
from areas.profiles.facts import BUILDS, HERE, PROFILES, PUBLISHED, Build, ech_of
from areas.profiles.hello import GREASE, PSK, Hello
from areas.profiles.servers import H1, H2, Record, Recorder, port_of

book = Book()

CONNECTIONS, QUICK = 50, 10

def each_build(what: str, has: Callable[[Build], bool] = lambda _: True) -> Callable:
    """Adds a check for each build of which this is known, and that is captured."""

    def add(run: Callable) -> Callable:
        for build in filter(has, BUILDS):
            book.check(f"{build.profile}: {what}", "go-capture")(partial(of_build, run, build))
        return run

    return add


def of_build(run: Callable, build: Build, lab: Lab) -> None:
    with_profiles(lab)
    run(lab, build)


def with_profiles(lab: Lab) -> None:
    if lab.client.is_curl:
        raise Skipped("curl has no profiles")


def recorder(lab: Lab) -> Recorder:
    return lab.server("go-capture")


def asking(lab: Lab, profile: str, url: str, at: str, *args: str) -> Record:
    """What one run sends. Its connection ends with it, at the latest."""
    to = recorder(lab)
    to.rest()
    authority = url.split("/")[2]
    run = lab.client.run(*args, *to.trust(), "--as", profile, "--resolve", f"{authority}:{at}", url)
    # The recorder is no WebSocket server.
    patched(run).expect_code(22 if url.startswith("wss:") else 0)
    return to.asked(1)[0]


def patched(run: Run) -> Run:
    """Skips where the client lacks our patch of BoringSSL, if somebody chose another BoringSSL."""
    if "lacks Mimus's patch" in run.err and (os.environ.get("BORING_BSSL_PATH") or os.environ.get("CMAKE")):
        raise Skipped("the client's BoringSSL lacks Mimus's patch")
    return run


def hellos(lab: Lab, build: Build) -> list[Record]:
    """Many connections, each of a process of its own, so that none resumes another's session."""
    cache = lab.__dict__.setdefault("hellos", {})
    if build.name not in cache:
        count = QUICK if lab.quick else CONNECTIONS
        cache[build.name] = [page_of(lab, build.profile) for _ in range(count)]
    return cache[build.name]


def page_of(lab: Lab, profile: str) -> Record:
    return asking(lab, profile, f"https://a.test:{recorder(lab).port['h2']}/", "127.0.0.1", "-sS")


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


def hellos_if_any(lab: Lab, build: Build) -> list[bytes]:
    """None of a build that this client cannot look like: its own checks say so."""
    try:
        return [record.raw for record in hellos(lab, build)]
    except (Failed, Skipped):
        return []


def judge(lab: Lab) -> dict[str, list[str]]:
    """What ja4plus says of all hellos, those captured last; asked once, as it takes its time to begin."""
    python = lab.tools.parent / "ja4plus" / "bin" / "python"
    if not (python.parent / "ja4plus").exists():
        raise Skipped("ja4plus is not installed")
    if "judged" not in lab.__dict__:
        names, lines = [], []
        sent = {build.name: hellos_if_any(lab, build) for build in BUILDS}
        for build in BUILDS:
            captured = (HERE.parents[2] / "crates/proto/tests/data/hellos" / f"{build.name}.bin").read_bytes()
            for raw in [*sent[build.name], captured]:
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
    run = lab.client.run("fingerprint", "--jsonl", "--as", build.profile, "https://a.test/")
    patched(run).expect_code(0)
    told = json.loads(run.out)["tls"]
    for what in ("ja4", "ja3n", "peetprint"):
        expect_eq(what, told[what if what == "ja4" else f"{what}_hash"], build.hellos["h2"][what])


@each_build("resumed hello", lambda build: "resumed" in build.hellos)
def resumed(lab, build):
    to = recorder(lab)
    to.rest()
    url = f"https://a.test:{to.port['h2']}/close"
    run = lab.client.run(
        "-sS", *to.trust(), "--as", build.profile, "--resolve", f"{url.split('/')[2]}:127.0.0.1", url, url
    )
    patched(run).expect_code(0)
    first, second = to.asked(2)
    expect(not first.resumed and second.resumed, "the second connection does not resume the first one's session")
    expect_hello(first.hello, build, "h2")
    expect_hello(second.hello, build, "resumed")


@each_build("hello to an address", lambda build: "address" in build.hellos)
def address(lab, build):
    to = recorder(lab)
    to.rest()
    url = f"https://127.0.0.1:{to.port['h2']}/"
    patched(lab.client.run("-sS", *to.trust(), "--as", build.profile, url)).expect_code(0)
    expect_hello(to.asked(1)[0].hello, build, "address")


def look(lab: Lab, build: Build, captured: dict[str, str]) -> str:
    """The profile; where the browser was a headless one, a file that adds what such a one says of itself, and
    takes out the languages, which it does not know."""
    by_name = {name.lower(): value for name, value in captured.items()}
    own = {name: by_name[name] for name in ("user-agent", "sec-ch-ua") if "HeadlessChrome" in by_name.get(name, "")}
    if "accept-language" not in by_name:
        own["accept-language"] = ""
    if not own:
        return build.profile
    path = lab.folder / f"{build.name}.toml"
    # A string of JSON is one of TOML.
    values = "".join(f"{name} = {json.dumps(value)}\n" for name, value in own.items())
    path.write_text(f'name = "{build.name}-headless"\nextends = "{build.profile}"\n\n[values]\n{values}')
    return str(path)


def over_h2(lab: Lab, build: Build, what: str, *args: str) -> None:
    captured = build.http[what]
    fields = dict(captured["headers"])
    url = f"https://{fields[':authority']}{fields[':path']}"
    record = asking(lab, look(lab, build, fields), url, H2, "-sS", *args)
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


def same_head(lab, build, scheme: str, theirs: list[str]) -> None:
    """What the browser asked for by HTTP/1.1 is asked for again, in the same words."""
    fields = fields_of(theirs)
    url = f"{scheme}://{fields['Host']}{theirs[0].split(' ')[1]}"
    record = asking(lab, look(lab, build, fields), url, H1, "-sS")
    wire.expect_lines(wire.head(record.app), theirs)


@each_build("HTTP/1.1", lambda build: "h1" in build.http)
def http1(lab, build):
    same_head(lab, build, "https", build.http["h1"])


@each_build("HTTP/1.1 in the clear", lambda build: "plain" in build.http)
def in_the_clear(lab, build):
    same_head(lab, build, "http", build.http["plain"])


def websocket(lab: Lab, build: Build) -> Record:
    """Begins the WebSocket that was captured; the recorder refuses it."""
    cache = lab.__dict__.setdefault("websockets", {})
    if build.name not in cache:
        theirs = build.http["websocket"]
        fields = fields_of(theirs)
        url = f"wss://{fields['Host']}{theirs[0].split(' ')[1]}"
        said = ["--origin", fields["Origin"], "--subprotocol", fields["Sec-WebSocket-Protocol"]]
        said += ["-b", fields["Cookie"]] if "Cookie" in fields else []
        cache[build.name] = asking(lab, look(lab, build, fields), url, H1, "ws", *said)
    return cache[build.name]


@each_build("WebSocket hello", lambda build: "websocket" in build.hellos)
def websocket_tls(lab, build):
    expect_hello(websocket(lab, build).hello, build, "websocket")


@each_build("WebSocket", lambda build: "websocket" in build.http)
def websocket_head(lab, build):
    ours = wire.head(websocket(lab, build).app)
    wire.expect_lines(wire.keyless(ours), wire.keyless(build.http["websocket"]))


def opens_as(build: Build, record: Record) -> None:
    """The frames before the first request."""
    theirs = [bytes.fromhex(frame) for frame in build.http["navigate"]["frames"]]
    before = [frame for frame in theirs if frame[5:9] == bytes(4)]
    wire.expect_frames(wire.frames(record.app)[: len(before)], before)


@each_build("HTTP/2 opening")
def opening(lab, build):
    for record in hellos(lab, build):
        opens_as(build, record)


# Profiles of what was not captured: other platforms, and Chrome and Edge, which are Chromium below the fields.
def kin(profile: str) -> Build:
    family, version = profile.split("-")[:2]
    return BY_NAME[f"{'firefox' if family == 'firefox' else 'chromium'}-{version}"]


BY_NAME = {build.name: build for build in BUILDS}
OTHERS = [name for name in PROFILES if name not in PUBLISHED and name not in {build.profile for build in BUILDS}]


def other_hello(profile: str, lab: Lab) -> None:
    with_profiles(lab)
    for _ in range(3):
        expect_hello(page_of(lab, profile).hello, kin(profile), "h2")


def other_opening(profile: str, lab: Lab) -> None:
    with_profiles(lab)
    opens_as(kin(profile), page_of(lab, profile))


for _name in OTHERS:
    book.check(f"{_name}: fields, GREASE", "go-capture")(partial(other_hello, _name))
    book.check(f"{_name}: HTTP/2 opening", "go-capture")(partial(other_opening, _name))


# Profiles of browsers that nobody captured for us, against what public tables print.
def published_prints(profile: str, lab: Lab) -> None:
    with_profiles(lab)
    for _ in range(3):
        hello = page_of(lab, profile).hello
        for what in ("ja4", "ja3n", "peetprint"):
            expect_eq(what, getattr(hello, what), PUBLISHED[profile][what])


def published_order(profile: str, lab: Lab) -> None:
    with_profiles(lab)
    expect_eq("order of extensions", page_of(lab, profile).hello.order, PUBLISHED[profile]["order"])


def published_opening(profile: str, lab: Lab) -> None:
    with_profiles(lab)
    theirs = PUBLISHED[profile]
    expected = wire.opening(theirs["settings"], theirs["window_increment"])
    wire.expect_frames(wire.frames(page_of(lab, profile).app)[: len(expected)], expected)


for _name in PUBLISHED:
    book.check(f"{_name}: JA4, JA3N, peetprint", "go-capture")(partial(published_prints, _name))
    book.check(f"{_name}: order", "go-capture")(partial(published_order, _name))
    book.check(f"{_name}: HTTP/2 opening", "go-capture")(partial(published_opening, _name))


@book.check("the profiles that are checked are those that there are")
def all_there(lab):
    with_profiles(lab)
    run = lab.client.run("profile", "list").expect_code(0)
    expect_eq("profiles", sorted(line.split()[0] for line in run.out.decode().splitlines() if line), sorted(PROFILES))
