"""Connections of HTTP/2: shared, sent away, given up in time."""

from harness.checks import Book, expect, expect_eq

from areas.h2.servers import curl_cannot, twice


book = Book()
check = book.check
on_both = twice(book)

# Slack for a busy machine, in seconds: a timeout may be late by this, never early.
SLACK = 2.0


def asked(lab, name: str, secure: bool, path: str, count: int) -> list:
    """Asks `count` times in one invocation."""
    *flags, url = lab.server(name).ask(secure, path)
    return lab.client.many(*flags, *[url] * count, count=count)


@on_both("twenty requests share one connection", "nginx", "go")
def shared(lab, secure):
    if not secure:
        curl_cannot(lab, "cannot use a connection of prior knowledge twice")
    got = asked(lab, "nginx", secure, "/connection", 20)
    expect_eq("connections nginx saw", len({one.text.split()[0] for one in got}), 1)
    expect_eq("requests nginx counted", [int(one.text.split()[1]) for one in got], list(range(1, 21)))
    got = asked(lab, "go", secure, "/connection", 20)
    expect_eq("connections Go saw", len({one.text for one in got}), 1)
    expect_eq("connections opened", sum(one.connects for one in got), 1)


@check("GOAWAY after every second request: each is answered all the same (6.8)", "nginx")
def few(lab):
    url = f"https://127.0.0.1:{lab.server('nginx').few}/connection"
    got = lab.client.many("--http2", "--cacert", lab.pki.ca.cert, *[url] * 7, count=7)
    for one in got:
        one.expect_status(200)
    expect_eq("connections nginx saw", len({one.text.split()[0] for one in got}), 4)


@on_both("a graceful GOAWAY: its answer is whole, the next request goes elsewhere (6.8)", "go")
def goaway(lab, secure):
    got = asked(lab, "go", secure, "/goaway", 3)
    expect_eq("connections Go saw", len({one.expect_status(200).text for one in got}), 3)


@check("one stream at a time, in frames of 1 KiB", "nginx")
def one_stream(lab):
    nginx = lab.server("nginx")
    url = f"https://127.0.0.1:{nginx.both}/size-65537"
    got = lab.client.many("--http2", "--cacert", lab.pki.ca.cert, url, url, url, count=3)
    expect_eq("lengths", [len(one.body) for one in got], [65_537] * 3)


@on_both("a connection that is closed without an answer is an error", "nginx")
def no_answer(lab, secure):
    lab.client.run("-sS", *lab.server("nginx").ask(secure, "/reset"), hang=20).expect_failure()


@on_both("--max-time ends a stream that is not answered, and tells the server (exit 28)", "go")
def timeout(lab, secure):
    path = f"/slow?ms=20000&secure={secure}"
    run = lab.client.run("-sS", "--max-time", "1", *lab.server("go").ask(secure, path), hang=20)
    run.expect_code(28)
    expect(0.95 <= run.seconds <= 1 + SLACK, f"after {run.seconds:.2f} s instead of 1 s")
    expect(f"given up: {path}" in lab.server("go").said(), "the server was not told")


@check("the client refuses push and says so before its first request (8.4)", "nghttpd-odd")
def push_off(lab):
    server = lab.server("nghttpd-odd")
    before = len(server.said())
    lab.client.one(*server.ask(False, "/size-1")).expect_status(200)
    said = server.said()[before:]
    expect("SETTINGS_ENABLE_PUSH(0x02):0" in said, "ENABLE_PUSH 0 was not sent")
    expect("PUSH_PROMISE" not in said, "a push was taken")
