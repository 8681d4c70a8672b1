"""h2specd: cases of RFC 7540 and 7541 that a client must refuse, each a server of its own."""

import contextlib
import random
import re
import socket
import subprocess

from harness.checks import Book, Failed, Skipped
from harness.servers import Unavailable, find

book = Book()
check = book.check

# Generic cases, RFC 7540's and RFC 7541's, the strict ones included.
CASES = 57
TRIES = 5
# What one run may take: each case at most 2 s.
HANG = 180
SUMMARY = re.compile(r"(\d+) tests, (\d+) passed, \d+ skipped, (\d+) failed")
# It takes a reset for the close of the connection that these cases want, but knows it only as the bare errno
# that older Go gave it; what newer Go wraps, it calls a failure. A client that leaves while the judge still
# writes is seen so.
RESET = "connection reset by peer"


def block_of_ports() -> int:
    """The first of as many ports as there are cases, each with a listener of its own."""
    # Below the ports that the system gives to clients, so that none is taken meanwhile.
    for _ in range(100):
        first = random.randrange(10_000, 30_000)
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + CASES + 1):
                    stack.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
        return first
    raise Failed(f"no {CASES} free ports in a row")


def failing(lab, secure: bool) -> set[str]:
    """Runs every case once: those that failed."""
    flags = ["--http2", "-k"] if secure else ["--http2-prior-knowledge"]
    client = " ".join([lab.client.program, "-sS", "-o", "/dev/null", "--max-time", "2", *flags])
    command = [find("h2specd", lab.tools), "-S", "-f", str(block_of_ports()), "-e", client]
    if secure:
        pair = lab.pki.server
        command += ["-t", "-c", str(pair.cert), "-k", str(pair.key)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, env=lab.client.environment(None))
    with (lab.folder / f"h2specd-{'tls' if secure else 'plain'}.log").open("a") as log:
        log.write(done.stdout + done.stderr)
    summary = SUMMARY.search(done.stdout)
    if summary is None:
        raise Failed(f"h2specd ended without a summary: {done.stderr.strip()[-200:]}")
    tests, passed, failed = map(int, summary.groups())
    wrong = verdicts(done.stdout) if failed else {}
    if tests != CASES or passed + failed != tests or len(wrong) != failed:
        raise Failed(f"{tests} cases, {passed} passed, {failed} failed, where {CASES} have a verdict")
    return {name for name, seen in wrong.items() if not (seen.startswith("Error: ") and seen.endswith(RESET))}


def verdicts(output: str) -> dict[str, str]:
    """The cases that it calls failed, each with what it saw."""
    wrong, name = {}, ""
    # The list of failures repeats what stands among the cases.
    for line in map(str.strip, output.split("Failures:")[-1].splitlines()):
        if line.startswith("×"):
            name = line[2:]
            wrong[name] = ""
        elif line.startswith("Actual:"):
            wrong[name] = line.removeprefix("Actual:").strip()
    return wrong


def cases(lab, *, secure: bool, most: int) -> None:
    """Fails when more than `most` cases do."""
    wrong = None
    # Some cases race with the client's leaving: one that fails fails each time.
    for _ in range(TRIES):
        try:
            now = failing(lab, secure)
        except Unavailable as absent:
            raise Skipped(str(absent)) from None
        wrong = now if wrong is None else wrong & now
        if not wrong:
            return
    if len(wrong) > most:
        raise Failed(f"{len(wrong)} of {CASES} failed: {'; '.join(sorted(wrong))}")


@check("h2specd: 57 of 57 cases by prior knowledge")
def plain(lab):
    cases(lab, secure=False, most=0)


@check("h2specd: 55 or more of 57 cases over TLS")
def over_tls(lab):
    # It closes the socket under TLS while the GOAWAY is on its way, and then misses it now and then.
    cases(lab, secure=True, most=2)
