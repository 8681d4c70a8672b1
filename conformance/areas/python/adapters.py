"""Other people's clients on Mimus: httpx's own suite, the SDKs of OpenAI and Anthropic, LangChain, Scrapy."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

from areas.python.environment import Suite
from harness.checks import Book, Failed, Skipped, expect, expect_eq
from harness.servers import Server, Unavailable, free_port

book = Book()

CLIENTS = Path(__file__).resolve().parent / "clients"

HANG = 600
"""Seconds that httpx's suite, or a thousand calls of an SDK, may take."""


class Httpx(Suite):
    """httpx's own suite, in an environment where the other clients are as well."""

    name = "httpx"
    distribution = "httpx==0.28.1"
    sha256 = "75e98c5f16b0f35b567856f597f06ff2270a374470a5c2392242528e3e3e42fc"
    requirements = (
        "anthropic==2.12.0",
        "anyio==4.16.0",
        "chardet==7.7.0",
        "click==8.5.1",
        "h2==4.4.1",
        "httpx[brotli,cli,http2,socks,zstd]==0.28.1",
        "httpx2==2.16.2",
        "hypercorn==0.18.0",
        "langchain-openai==1.7.3",
        "openai==3.54.0",
        "pytest==9.2.0",
        "requests==2.34.2",
        "scrapy==2.19.0",
        "trio==0.35.0",
        "trustme==1.2.1",
        "urllib3==2.8.0",
        "uvicorn==0.54.0",
    )


class Chat(Server):
    """Chat completions over HTTP/1.1, and over TLS and HTTP/2."""

    name = "chat"

    def prepare(self) -> list[str]:
        suite = self.lab.running("httpx")
        if suite is None:
            raise Unavailable("its environment could not be made")
        self.plain, self.secure = free_port(), free_port()
        self.ports = [self.plain, self.secure]
        pair = self.lab.pki.server
        return [
            str(suite.python.parent / "hypercorn"), "--bind", f"127.0.0.1:{self.secure}",
            "--insecure-bind", f"127.0.0.1:{self.plain}", "--certfile", str(pair.cert), "--keyfile", str(pair.key),
            "--keep-alive", "60", f"{CLIENTS / 'chat.py'}:application",
        ]  # fmt: skip


SERVERS: list[type[Server]] = [Httpx, Chat]

# What fails of httpx's suite, and why: none of it is forgotten, and none of it is hidden.
KNOWN: dict[str, str] = {
    "tests/test_config.py::test_SSLContext_with_get_request": "an ssl.SSLContext is of Python's own TLS: refused",
    "tests/test_main.py::test_errors": "it compares the text of an error, which is ours",
    "tests/test_timeouts.py::test_pool_timeout[asyncio]":
        "an answer that came whole with its head has given its connection back already",
    "tests/test_timeouts.py::test_write_timeout[asyncio]":
        "the server reads on: a write that can go on when the loop looks has not timed out",
}

# What fails of it over httpx's own transports too, with the versions above.
CHARDET = "chardet 7 guesses another encoding"
UVICORN = "uvicorn 0.54 writes to the log as well"
OWN: dict[str, str] = {
    "tests/client/test_client.py::test_client_decode_text_using_autodetect": CHARDET,
    "tests/client/test_client.py::test_client_decode_text_using_explicit_encoding": CHARDET,
    "tests/client/test_proxies.py::test_async_proxy_close[asyncio]": "example.com has no address here",
    "tests/client/test_proxies.py::test_async_proxy_close[trio]": "example.com has no address here",
    "tests/client/test_proxies.py::test_sync_proxy_close": "example.com has no address here",
    "tests/models/test_responses.py::test_response_decode_text_using_autodetect": CHARDET,
    "tests/models/test_responses.py::test_response_no_charset_with_cp_1252_content": CHARDET,
    "tests/test_decoders.py::test_text_decoder_with_autodetect[asyncio-data2-cp1252]": CHARDET,
    "tests/test_decoders.py::test_text_decoder_with_autodetect[trio-data2-cp1252]": CHARDET,
    "tests/test_main.py::test_download": "click 8.5 warns of what it uses",
    "tests/test_timeouts.py::test_connect_timeout[asyncio]": "packets to 10.255.255.1 may be refused, not lost",
    "tests/test_timeouts.py::test_write_timeout[trio]": "it depends on the machine",
    "tests/test_utils.py::test_logging_redirect_chain": UVICORN,
    "tests/test_utils.py::test_logging_request": UVICORN,
}

TRIO = "AsyncTransport runs on asyncio's loops alone"

FLOOR = 60
"""Of the tests that send requests, but those under trio, at least so many pass."""


def run(lab, *command: str | Path, cwd: Path | None = None, **env: str) -> str:
    """Runs a Python program with the package on its path: what it wrote, and why it failed if it did."""
    suite = lab.server("httpx")
    path = [str(CLIENTS)] if suite.package is None else [str(suite.package), str(CLIENTS)]
    environment = lab.client.environment({"PYTHONPATH": os.pathsep.join(path), "NETRC": ""} | env)
    try:
        done = subprocess.run(
            [suite.python, *map(str, command)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=HANG, env=environment, cwd=cwd or suite.folder,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Failed(f"still running after {HANG} s") from None
    if done.returncode != 0:
        raise Failed(f"exit code {done.returncode}: {(done.stdout + done.stderr).strip()[-400:]}")
    return done.stdout


@book.check("httpx's suite passes over our transports, but for what is listed", "httpx")
def _(lab) -> None:
    suite = lab.server("httpx")
    results = suite.folder / "results.json"
    # Its tests are at home in their folder, and take the installed package, not the one beside them.
    program = "import pytest, sys; sys.path.remove(''); pytest.main(sys.argv[1:])"
    run(lab, "-c", program, "-q", "-p", "over_mimus", "-p", "no:cacheprovider", "--import-mode=append",
        "tests", cwd=suite.source, SUITE_OVER="" if suite.package is None else "mimus",
        SUITE_RESULTS=str(results))  # fmt: skip
    if not results.exists():
        raise Failed("the suite did not run")
    judge(json.loads(results.read_text()), suite.package is None)


def judge(outcomes: dict, is_baseline: bool) -> None:
    """Prints the counts, and fails where a test fails that is not known to."""
    groups: dict[str, list[dict]] = {"that send requests": [], "that do so under trio": [], "of the rest": []}
    excused = OWN if is_baseline else OWN | KNOWN
    for name, its in outcomes.items():
        under_trio = its["sent"] and "[trio" in name
        title = "that send requests" if its["sent"] else "of the rest"
        groups["that do so under trio" if under_trio else title].append(its)
        if under_trio and not is_baseline:
            excused = {name: TRIO} | excused
    for title, chosen in groups.items():
        counts = Counter(its["outcome"] for its in chosen)
        words = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
        print(f"       httpx, {len(chosen)} tests {title}: {words}", flush=True)
    failed = {name: its["reason"] for name, its in outcomes.items() if its["outcome"] == "failed"}
    for name in sorted(failed.keys() & excused.keys()):
        if excused[name] != TRIO:
            print(f"         known: {name}: {excused[name]}", flush=True)
    new = {name: reason for name, reason in failed.items() if name not in excused}
    expect(not new, f"{len(new)} tests fail that did not: {dict(sorted(new.items())[:8])}")
    passed = sum(its["outcome"] == "passed" for its in groups["that send requests"])
    expect(passed >= FLOOR, f"{passed} tests that send requests pass, {FLOOR} is the least")


def sdk(lab, job: str, base: str, calls: int, *ca: object) -> dict:
    """What the server saw of a job of `sdks.py`."""
    if lab.server("httpx").package is None:
        raise Skipped("it is Mimus that the SDKs run on")
    return json.loads(run(lab, CLIENTS / "sdks.py", job, base, calls, *ca).splitlines()[-1])


def plain(lab) -> str:
    return f"http://127.0.0.1:{lab.server('chat').plain}"


def secure(lab) -> str:
    return f"https://localhost:{lab.server('chat').secure}"


class Way:
    """How the streams of an SDK come."""

    def __init__(self, said: str, version: str, address, spare: float) -> None:
        self.said = said
        self.version = version
        self.address = address
        self.spare = spare
        """Of the streams that are heard, the part that may cost a connection."""

    def tell(self, name: str, kind: str, what: str, seen: dict) -> None:
        print(f"       {name}, {kind}, {self.said}: {seen['requests']} streams {what}, "
              f"{seen['connections']} connections", flush=True)  # fmt: skip


WAYS = (
    # The end behind the last event that an SDK reads may be late: then another connection is made.
    Way("HTTP/1.1", "1.1", lambda lab: (plain(lab),), 0.05),
    Way("HTTP/2", "2", lambda lab: (secure(lab), lab.pki.ca.cert), 0.002),
)


def check_sdk(name: str, kind: str, way: Way) -> None:
    """The checks of one SDK, in its sync or its async client, over one version of HTTP."""

    def run_job(lab, job: str) -> dict:
        base, *ca = way.address(lab)
        calls = 100 if lab.quick else 1000
        seen = sdk(lab, f"{name}-{kind}-{job}", base, calls, *ca)
        expect_eq("versions", seen["versions"], [way.version])
        expect_eq("requests", seen["requests"], calls)
        return seen

    @book.check(f"{name}, {kind}, {way.said}: streams heard to their ends use connections again", "httpx", "chat")
    def _(lab) -> None:
        seen = run_job(lab, "listen")
        way.tell(name, kind, "heard to their ends", seen)
        expect(seen["connections"] <= 1 + seen["requests"] * way.spare, f"{seen['connections']} connections")

    @book.check(f"{name}, {kind}, {way.said}: streams left midway end at the server too", "httpx", "chat")
    def _(lab) -> None:
        seen = run_job(lab, "leave")
        way.tell(name, kind, "left midway", seen)
        expect_eq("left midway", (seen["given_up"], seen["under_way"]), (seen["requests"], 0))
        # To leave an answer of HTTP/1.1 is to close its connection; there is no other word for it.
        expect(seen["connections"] <= (1 if way.version == "2" else seen["requests"]), f"{seen['connections']}")


for _name in ("openai", "anthropic"):
    for _kind in ("sync", "async"):
        for _way in WAYS:
            check_sdk(_name, _kind, _way)


@book.check("openai, async: crowds of streams are left midway on shared HTTP/2 connections", "httpx", "chat")
def _(lab) -> None:
    seen = sdk(lab, "openai-async-crowd", secure(lab), 500, lab.pki.ca.cert)
    expect_eq("left midway", (seen["requests"], seen["given_up"], seen["under_way"]), (500, 500, 0))
    expect(seen["connections"] <= 2, f"{seen['connections']} connections for 500 calls")


@book.check("LangChain calls, streams and awaits over our transports", "httpx", "chat")
def _(lab) -> None:
    expect_eq("completed", sdk(lab, "langchain", plain(lab), 1)["completed"], 3)


@book.check("Scrapy crawls pages, redirects, forms and compressed bodies with our handler", "httpx")
def _(lab) -> None:
    if lab.server("httpx").package is None:
        raise Skipped("it is Mimus that Scrapy downloads with")
    folder = lab.folder / "scrapy"
    folder.mkdir()
    told = json.loads(run(lab, CLIENTS / "crawl.py", cwd=folder).splitlines()[-1])
    wrong = {name: said for name, said in told["expected"].items() if told["found"].get(name) != said}
    if wrong:
        name = min(wrong)
        raise Failed(f"{len(wrong)} pages are wrong: {name} is {told['found'].get(name)!r}, not {wrong[name]!r}")
    expect_eq("pages", sorted(told["found"]), sorted(told["expected"]))
    # One ends early, and one may be dialled in vain where another becomes free first.
    expect(told["connections"] <= 2 * told["concurrency"], f"{told['connections']} connections")
