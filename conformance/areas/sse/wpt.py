"""The Web Platform Tests' expectations of an event stream (wpt.json), over the wire."""

import json
from functools import partial

from harness.checks import Book, Skipped, expect, expect_eq

from areas.sse.replay import CASES

book = Book()

# In one piece, in single bytes, and in pieces that fall anywhere.
PIECES = (0, 1, 7)


def events(lab, *arguments: str) -> list[dict]:
    """What the client shows of a stream, which it reads to its end."""
    if lab.client.is_curl:
        raise Skipped("curl shows a stream, not its events")
    run = lab.client.run("sse", "--jsonl", *arguments).expect_code(0)
    return [json.loads(line) for line in run.out.decode().splitlines()]


def stream(lab, number: int, case: dict) -> None:
    wanted = [{"event": "message", "id": ""} | event for event in case["events"]]
    for piece in PIECES:
        got = events(lab, "--no-reconnect", lab.server("replay").url("streams", number, piece))
        expect_eq(f"events in pieces of {piece or 'all'}", got, wanted)


def answer(lab, number: int, case: dict) -> None:
    url = lab.server("replay").url("answers", number)
    if case["stream"]:
        expect_eq("events", len(events(lab, "--no-reconnect", url)), 1)
        return
    if lab.client.is_curl:
        raise Skipped("curl shows whatever is answered")
    # It has to stop by itself: what is no stream is not asked for again.
    run = lab.client.run("sse", "--jsonl", url, hang=20)
    expect_eq("output", run.out, b"")
    expect((run.code == 0) == (case["status"] == 204), f"exit code {run.code}{run.complaint()}")


for place, one in enumerate(CASES["streams"]):
    name = f"{one['name']} ({one['source']})"
    book.check(name, "replay")(partial(stream, number=place, case=one))
for place, one in enumerate(CASES["answers"]):
    name = f"{one['name']} is {'a' if one['stream'] else 'no'} stream ({one['source']})"
    book.check(name, "replay")(partial(answer, number=place, case=one))
