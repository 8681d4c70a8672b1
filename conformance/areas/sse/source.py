"""A source by another's library: kept up with, lost and found again."""

import json
import time
from collections.abc import Callable
from functools import partial

from harness.checks import Book, expect, expect_eq

from areas.sse.wpt import events

book = Book()

WAYS = {"h1": "HTTP/1.1", "h2c": "HTTP/2 by prior knowledge", "h2": "HTTP/2 over TLS"}


def each_way(name: str, **more) -> Callable:
    """As `Book.check`, by every way to the server."""

    def add(run: Callable) -> Callable:
        for way, long in WAYS.items():
            book.check(f"{name}, {long}", "go-sse", **more)(partial(run, way=way))
        return run

    return add


@each_way("messages of many lines, of 500 kB and with an id come whole; 204 ends it")
def kinds(lab, way):
    got = events(lab, *lab.server("go-sse").ask(way, "/kinds"))
    expect_eq("events", len(got), 3)
    expect_eq("lines", got[0]["data"], "two\nlines\nand \u00fcn\u00efc\u00f6d\u00e9 \U0001f426")
    expect_eq("length", got[1]["data"], "long " * 100_000)
    expect_eq("the last", got[2], {"event": "message", "id": "last one", "data": "end"})


@each_way("a stream that ends four times a second is gone on with, without a gap")
def gone_on_with(lab, way):
    server = lab.server("go-sse")
    before = server.said().count("opened behind")
    got = events(lab, "--count", "100", *server.ask(way, "/events?for=250ms"))
    numbers = [json.loads(one["data"])["n"] for one in got]
    expect_eq("numbers", numbers, list(range(numbers[0], numbers[0] + 100)))
    ids = [int(one["id"]) for one in got]
    expect_eq("ids", ids, list(range(ids[0], ids[0] + 100)))
    expect_eq("types", {one["event"] for one in got}, {"tick"})
    opened = server.said().count("opened behind") - before
    expect(opened >= 3, f"{opened} connections, where the server ended each after 250 ms")


@each_way("an event that was seen earlier is where it begins")
def begin_behind(lab, way):
    ask = lab.server("go-sse").ask(way, "/events")
    first = events(lab, "--count", "5", *ask)
    last = first[1]["id"]
    got = events(lab, "--count", "2", "--last-event-id", last, *ask)
    expect_eq("what follows", got, first[2:4])


@each_way("who leaves is gone: the server's handler ends")
def leaves(lab, way):
    server = lab.server("go-sse")
    events(lab, "--count", "1", *server.ask(way, "/events"))
    for _ in range(200):
        said = server.said()
        if said.count("opened behind") == said.count("ended"):
            return
        time.sleep(0.05)
    expect(False, "a handler still writes to who has left")
