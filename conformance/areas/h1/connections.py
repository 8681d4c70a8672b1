"""Connections: reuse, names and addresses, time."""

import contextlib
import socket

from harness.checks import Book, Skipped, expect, expect_eq
from harness.servers import free_port

book = Book()
check = book.check

# Slack for a busy machine, in seconds: a timeout may be late by this, never early.
SLACK = 2.0


def on_connections(lab, kind: str, count: int) -> tuple[list[str], list[int]]:
    """Asks `count` times in one invocation: the server's connection numbers, and the client's count."""
    url = lab.server("nginx").url("/connection", kind)
    got = lab.client.many("--cacert", lab.pki.ca.cert, *[url] * count, count=count)
    return [one.text.split()[0] for one in got], [one.connects for one in got]


@check("five requests share one connection", "nginx")
def keep_alive(lab):
    numbers, connects = on_connections(lab, "plain", 5)
    expect_eq("connections the server saw", len(set(numbers)), 1)
    expect_eq("num_connects", connects, [1, 0, 0, 0, 0])


@check("five requests share one TLS connection", "nginx")
def keep_alive_tls(lab):
    numbers, connects = on_connections(lab, "tls", 5)
    expect_eq("connections the server saw", len(set(numbers)), 1)
    expect_eq("num_connects", connects, [1, 0, 0, 0, 0])


@check("a hundred requests share one connection", "nginx")
def keep_alive_long(lab):
    numbers, connects = on_connections(lab, "plain", 100)
    expect_eq("connections the server saw", len(set(numbers)), 1)
    expect_eq("connections opened", sum(connects), 1)


@check("bodies sent and received take turns on one connection", "httpbin")
def turns(lab):
    url = lab.server("httpbin").url("/anything")
    got = lab.client.many("-d", "a=" + "b" * 70_000, url, url, url, count=3)
    expect_eq("num_connects", [one.connects for one in got], [1, 0, 0])
    for one in got:
        expect_eq("length of the form field", len(one.json()["form"]["a"][0]), 70_000)


@check("Connection: close is obeyed (RFC 9112 9.6)", "nginx")
def close_each(lab):
    numbers, connects = on_connections(lab, "close", 3)
    expect_eq("connections the server saw", len(set(numbers)), 3)
    expect_eq("num_connects", connects, [1, 1, 1])


@check("a server that closes after every second answer", "nginx")
def close_after_two(lab):
    numbers, connects = on_connections(lab, "few", 5)
    expect_eq("connections the server saw", len(set(numbers)), 3)
    expect_eq("num_connects", connects, [1, 0, 1, 0, 1])


@check("a kept connection that the server has closed meanwhile is replaced", "nginx", "httpbin", slow=True)
def stale(lab):
    url = lab.server("nginx").url("/connection", "brief")
    wait = lab.server("httpbin").url("/delay/2.5")
    first, _, second = lab.client.many(url, wait, url, count=3)
    first.expect_status(200)
    second.expect_status(200)
    expect(first.text.split()[0] != second.text.split()[0], "the server saw one connection")


@check("two origins have two connections", "nginx", "httpbin")
def two_origins(lab):
    urls = [lab.server("nginx").url("/connection"), lab.server("httpbin").url("/get")]
    got = lab.client.many(*urls, *urls, count=4)
    expect_eq("num_connects", [one.connects for one in got], [1, 1, 0, 0])


@check("a Unix socket", "nginx")
def unix_socket(lab):
    got = lab.client.one("--unix-socket", lab.server("nginx").socket, "http://localhost/size-1023")
    expect_eq("length", len(got.expect_status(200).body), 1023)


@check("an IPv6 literal", "nginx")
def ipv6(lab):
    nginx = lab.server("nginx")
    if nginx.port_v6 is None:
        raise Skipped("no IPv6 loopback here")
    lab.client.one(f"http://[::1]:{nginx.port_v6}/size-1").expect_status(200)


@check("the other address family when the first refuses (RFC 8305)", "httpbin")
def fail_over(lab):
    # localhost is ::1 as well where there is IPv6; go-httpbin listens on 127.0.0.1 only.
    lab.client.one("--connect-timeout", "5", lab.server("httpbin").url("/get", host="localhost"))


@check("--resolve gives a name an address", "httpbin")
def resolve(lab):
    httpbin = lab.server("httpbin")
    got = lab.client.one(
        "--resolve", f"name.test:{httpbin.port}:127.0.0.1", httpbin.url("/headers", host="name.test")
    )
    expect_eq("Host", got.json()["headers"]["Host"], [f"name.test:{httpbin.port}"])


@check("a bad URL (exit 3)")
def bad_url(lab):
    for url in ("http://[::1/", "http://a b/"):
        lab.client.run("-sS", url).expect_code(3)


@check("a name that does not exist (exit 6)")
def unknown_name(lab):
    lab.client.run("-sS", "http://no-such-name.invalid/").expect_code(6)


@check("a port nobody listens on (exit 7)")
def refused(lab):
    lab.client.run("-sS", f"http://127.0.0.1:{free_port()}/").expect_code(7)


def expect_timeout(lab, limit: float, *args: str) -> None:
    run = lab.client.run("-sS", *args, hang=20).expect_code(28)
    expect(limit - 0.05 <= run.seconds <= limit + SLACK, f"after {run.seconds:.2f} s instead of {limit} s")


@contextlib.contextmanager
def full_backlog():
    """A port that takes no connection: its queue is full, so the kernel drops each SYN."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(8):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@check("--connect-timeout when nobody answers the SYN (exit 28)")
def connect_timeout(lab):
    with full_backlog() as port:
        expect_timeout(lab, 1, "--connect-timeout", "1", f"http://127.0.0.1:{port}/")


@check("--max-time before the head (exit 28)", "httpbin")
def head_timeout(lab):
    expect_timeout(lab, 1, "--max-time", "1", lab.server("httpbin").url("/delay/10"))


@check("--max-time while the body drips (exit 28)", "httpbin")
def drip_timeout(lab):
    url = lab.server("httpbin").url("/drip?duration=8&numbytes=80&delay=0")
    expect_timeout(lab, 1, "--max-time", "1", url)


@check("--max-time during the TLS handshake (exit 28)")
def tls_timeout(lab):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        expect_timeout(lab, 1, "--max-time", "1", f"https://127.0.0.1:{silent.getsockname()[1]}/")


@check("a drip without a timeout arrives whole", "httpbin", slow=True)
def drip(lab):
    got = lab.client.one(lab.server("httpbin").url("/drip?duration=2&numbytes=10&delay=0"))
    expect_eq("body", got.body, b"*" * 10)
    expect(got.seconds >= 1.5, f"arrived after {got.seconds} s")


@check("time_total tells the truth", "httpbin")
def time_total(lab):
    got = lab.client.one(lab.server("httpbin").url("/delay/0.5"))
    expect(0.5 <= got.seconds <= 0.5 + SLACK, f"{got.seconds} s for a delay of 0.5 s")


@check("a connection closed without an answer (exit 52 or 56)", "nginx")
def no_answer(lab):
    lab.client.run("-sS", lab.server("nginx").url("/reset")).expect_code(52, 56)
