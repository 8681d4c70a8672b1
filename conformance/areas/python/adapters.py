"""Other people's clients on Mimus: httpx's own suite, the SDKs of OpenAI and Anthropic, LangChain, Scrapy."""

from __future__ import annotations

import json
import shutil

from areas.python import packages
from areas.python.packages import SCRIPTS
from harness.checks import Book, Failed, expect, expect_eq
from harness.servers import Server, free_port

book = Book()

ENVIRONMENT = "adapters"
HTTPX = "httpx==0.28.1"
SUITE = 600
"""Seconds for httpx's suite: some 20 on an idle machine."""


class Chat(Server):
    """Chat completions over HTTP/1.1, and over TLS and HTTP/2."""

    name = "chat"

    def prepare(self) -> list[str]:
        python = packages.environment(self.lab, ENVIRONMENT)
        self.plain, self.secure = free_port(), free_port()
        self.ports = [self.plain, self.secure]
        pair = self.lab.pki.server
        return [
            str(python.parent / "hypercorn"), "--bind", f"127.0.0.1:{self.secure}",
            "--insecure-bind", f"127.0.0.1:{self.plain}", "--certfile", str(pair.cert), "--keyfile", str(pair.key),
            "--keep-alive", "60", f"file:{SCRIPTS / 'chat.py'}:application",
        ]  # fmt: skip


SERVERS = [Chat]


def suite(lab, over: str) -> dict:
    """The outcome of each test of httpx's suite, with its transports diverted to `over`."""
    python = packages.environment(lab, ENVIRONMENT)
    source = packages.sdist(lab, HTTPX)
    folder = lab.folder / f"httpx-{over}"
    # Without the package beside its tests, which take the installed one.
    folder.mkdir()
    shutil.copytree(source / "tests", folder / "tests")
    shutil.copy(source / "pyproject.toml", folder)
    results = folder / "results.json"
    program = "import sys, pytest; pytest.main(sys.argv[1:])"
    arguments = ["-q", "-p", "over_mimus", "-p", "no:cacheprovider", "--override-ini", "filterwarnings="]
    packages.run(
        lab, python, "-c", program, *arguments, cwd=folder, hang=SUITE,
        SUITE_PACKAGE="httpx", SUITE_OVER=over, SUITE_RESULTS=str(results),
    )  # fmt: skip
    return json.loads(results.read_text())


def passed(outcomes: dict) -> int:
    return sum(test["outcome"] == "passed" for test in outcomes.values())


@book.check("httpx's own suite passes over our transports but for what is listed")
def _(lab):
    known = json.loads((SCRIPTS / "httpx.json").read_text())
    outcomes = suite(lab, "mimus")
    talking = {name: test for name, test in outcomes.items() if test["sent"]}
    under_trio = {name for name in talking if "[trio" in name}
    ours = {name: test for name, test in talking.items() if name not in under_trio}
    print(
        f"       httpx's suite: {passed(outcomes)} of {len(outcomes)} pass; of the {len(ours)} that send requests "
        f"{passed(ours)}; {len(under_trio)} more send them under trio",
        flush=True,
    )
    reasons = known["failures"]
    failed = {name: test for name, test in outcomes.items() if test["outcome"] == "failed"}
    for name in sorted(failed):
        print(f"         {name}: {reasons.get(name) or known['trio' if name in under_trio else 'unknown']}")
    new = sorted(name for name in failed if name not in reasons and name not in under_trio)
    expect(not new, f"{len(new)} fail that did not: {', '.join(new[:3])}: {failed[new[0]]['reason'] if new else ''}")
    expect(passed(ours) >= known["floor"], f"{passed(ours)} pass, where {known['floor']} did")


def sdk(lab, job: str, base: str, calls: int, *ca: object) -> dict:
    """What the server saw of a job of `sdks.py`."""
    python = packages.environment(lab, ENVIRONMENT)
    said = packages.run(lab, python, SCRIPTS / "sdks.py", job, base, str(calls), *map(str, ca), hang=600)
    return json.loads(said.splitlines()[-1])


def plain(lab) -> tuple[str]:
    return (f"http://127.0.0.1:{lab.server('chat').plain}",)


def secure(lab) -> str:
    return f"https://localhost:{lab.server('chat').secure}"


def check_sdks(name: str, kind: str) -> None:
    """The checks of one SDK, in its sync or its async client."""

    @book.check(f"{name}, {kind}: 200 streams heard to their ends go over one connection", "chat")
    def _(lab):
        seen = sdk(lab, f"{name}-{kind}-listen", *plain(lab), 200)
        expect_eq("requests", seen["requests"], 200)
        expect_eq("connections", seen["connections"], 1)

    @book.check(f"{name}, {kind}: 1000 streams left midway over HTTP/2 go over one connection", "chat", slow=True)
    def _(lab):
        seen = sdk(lab, f"{name}-{kind}-leave", secure(lab), 1000, lab.pki.ca.cert)
        expect_eq("versions", seen["versions"], ["2"])
        expect_eq("left midway", (seen["requests"], seen["given_up"], seen["under_way"]), (1000, 1000, 0))
        expect_eq("connections", seen["connections"], 1)

    @book.check(f"{name}, {kind}: 100 streams left midway over HTTP/1.1 each end at the server", "chat")
    def _(lab):
        seen = sdk(lab, f"{name}-{kind}-leave", *plain(lab), 100)
        expect_eq("left midway", (seen["requests"], seen["given_up"], seen["under_way"]), (100, 100, 0))
        expect(seen["connections"] <= 100, f"{seen['connections']} connections for 100 calls")


for _name in ("openai", "anthropic"):
    for _kind in ("sync", "async"):
        check_sdks(_name, _kind)


@book.check("openai, async: crowds of streams are left midway over one HTTP/2 connection", "chat")
def _(lab):
    seen = sdk(lab, "openai-async-crowd", secure(lab), 500, lab.pki.ca.cert)
    expect_eq("left midway", (seen["requests"], seen["given_up"], seen["under_way"]), (500, 500, 0))
    expect(seen["connections"] <= 2, f"{seen['connections']} connections for 500 calls")


@book.check("LangChain calls, streams and awaits over our transports", "chat")
def _(lab):
    seen = sdk(lab, "langchain", *plain(lab), 1)
    expect_eq("completed", seen["completed"], 3)


@book.check("Scrapy crawls pages, redirects, forms and compressed bodies with our handler")
def _(lab):
    python = packages.environment(lab, ENVIRONMENT)
    folder = lab.folder / "scrapy"
    folder.mkdir()
    told = json.loads(packages.run(lab, python, SCRIPTS / "crawl.py", cwd=folder).splitlines()[-1])
    wrong = {name: pair for name, pair in told["expected"].items() if told["found"].get(name) != pair}
    if wrong:
        name = min(wrong)
        raise Failed(f"{len(wrong)} pages are wrong: {name} is {told['found'].get(name)!r}, not {wrong[name]!r}")
    expect_eq("pages", sorted(told["found"]), sorted(told["expected"]))
    expect(told["connections"] <= told["concurrency"], f"{told['connections']} connections")
