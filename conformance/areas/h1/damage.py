"""Answers that are wrong on the wire: `openssl s_server -HTTP` sends the bytes as they are given.

None of them may pass for a whole answer, hang, or fill the memory; neither may a client be so strict
that it refuses what is only unusual.
"""

from harness.checks import Book, Skipped, expect, expect_eq

book = Book()
check = book.check

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def ask(lab, name: str, wire: bytes):
    """Asks for an answer that is damaged; any outcome, but within twenty seconds."""
    url = lab.server("openssl-raw").answer(name, wire)
    return lab.client.run("-sS", "--cacert", lab.pki.ca.cert, url, hang=20)


def body_of(lab, name: str, wire: bytes) -> bytes:
    return ask(lab, name, wire).expect_code(0).out


@check("a body that ends early (exit 18)", "openssl-raw")
def short(lab):
    ask(lab, "short", OK + b"Content-Length: 100\r\n\r\nhalf").expect_code(18)


@check("a chunk that ends early (exit 18 or 56)", "openssl-raw")
def short_chunk(lab):
    ask(lab, "short-chunk", CHUNKED + b"a\r\nhalf").expect_code(18, 56)


@check("no last chunk (exit 18 or 56)", "openssl-raw")
def no_last_chunk(lab):
    ask(lab, "no-last-chunk", CHUNKED + b"4\r\nhalf\r\n").expect_code(18, 56)


@check("a chunk size that is no number", "openssl-raw")
def bad_chunk(lab):
    ask(lab, "bad-chunk", CHUNKED + b"zz\r\nhalf\r\n0\r\n\r\n").expect_failure()


@check("a chunk size beyond 64 bits", "openssl-raw")
def huge_chunk(lab):
    ask(lab, "huge-chunk", CHUNKED + b"fffffffffffffffff\r\nhalf\r\n0\r\n\r\n").expect_failure()


@check("a Content-Length of 2^63 does not take memory for granted", "openssl-raw")
def huge_length(lab):
    ask(lab, "huge-length", OK + b"Content-Length: 9223372036854775807\r\n\r\nhello").expect_failure()


@check("bytes after the body are not part of it", "openssl-raw")
def trailing(lab):
    wire = OK + b"Content-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    expect_eq("body", body_of(lab, "trailing", wire), b"hello")


@check("bytes after the last chunk are not part of the body", "openssl-raw")
def trailing_chunk(lab):
    expect_eq("body", body_of(lab, "trailing-chunk", CHUNKED + b"5\r\nhello\r\n0\r\n\r\nevil"), b"hello")


@check("chunk extensions and trailers are read past (RFC 9112 7.1.1)", "openssl-raw")
def extensions(lab):
    wire = CHUNKED + b'5;a=b;c="d;e"\r\nhello\r\n0;last\r\nX-Sum: 1\r\n\r\n'
    expect_eq("body", body_of(lab, "extensions", wire), b"hello")


@check("informational answers come before the answer (RFC 9110 15.2)", "openssl-raw")
def informational(lab):
    wire = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 3 + OK + b"Content-Length: 5\r\n\r\nhello"
    expect_eq("body", body_of(lab, "informational", wire), b"hello")


@check("a body without a length lasts until the end (RFC 9112 6.3)", "openssl-raw")
def until_close(lab):
    expect_eq("body", body_of(lab, "until-close", OK + b"\r\nhello" * 100), b"hello" + b"\r\nhello" * 99)


@check("HTTP/1.0 with a length", "openssl-raw")
def http10(lab):
    wire = b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    expect_eq("body", body_of(lab, "http10", wire), b"hello")


@check("a status line without a reason", "openssl-raw")
def no_reason(lab):
    wire = b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello"
    expect_eq("body", body_of(lab, "no-reason", wire), b"hello")


@check("the same Content-Length twice is one (RFC 9110 8.6)", "openssl-raw")
def same_length_twice(lab):
    run = ask(lab, "same-length", OK + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello")
    expect(run.code != 0 or run.out == b"hello", f"exit 0 and {run.out!r}")


@check("something that is not HTTP is refused, and not shown", "openssl-raw")
def garbage(lab):
    run = ask(lab, "garbage", b"SSH-2.0-OpenSSH_9.2\r\n" + bytes(range(256)) * 8).expect_failure()
    expect_eq("output", run.out, b"")


@check("a head of 8 MiB is refused", "openssl-raw")
def endless_head(lab):
    ask(lab, "endless-head", OK + b"X: " + b"a" * (8 << 20) + b"\r\n\r\nhello").expect_failure()


@check("a head of 8 MiB in small lines is refused", "openssl-raw")
def many_headers(lab):
    ask(lab, "many-headers", OK + b"X: aaaaaaaaaaa\r\n" * (8 << 16) + b"\r\nhello").expect_failure()


@check("an answer of nothing (exit 52 or 56)", "openssl-raw")
def nothing(lab):
    ask(lab, "nothing", b"").expect_code(52, 56)


@check("broken gzip is an error", "openssl-raw")
def broken_gzip(lab):
    wire = OK + b"Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n\x1f\x8b\x08" + b"\xff" * 17
    url = lab.server("openssl-raw").answer("broken-gzip", wire)
    lab.client.run("-sS", "--compressed", "--cacert", lab.pki.ca.cert, url).expect_failure()


# What decides where a message ends must not have two readings: a proxy in between may have taken the
# other one. curl is more lenient, so it cannot stand in for mimus here.
AMBIGUOUS = {
    "two lengths that differ (RFC 9112 6.3)": OK + b"Content-Length: 5\r\nContent-Length: 4\r\n\r\nhello",
    "a length that is no number": OK + b"Content-Length: 5x\r\n\r\nhello",
    "a length with a sign": OK + b"Content-Length: +5\r\n\r\nhello",
    "a length beside chunked (RFC 9112 6.3)": OK
    + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "a transfer coding after chunked (RFC 9112 6.1)": OK
    + b"Transfer-Encoding: chunked, identity\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "white space before the colon (RFC 9112 5.1)": OK + b"Content-Length : 5\r\n\r\nhello",
    "a folded line (RFC 9112 5.2)": OK + b"X: a\r\n b\r\nContent-Length: 5\r\n\r\nhello",
    "NUL in a value (RFC 9110 5.5)": OK + b"X: a\0b\r\nContent-Length: 5\r\n\r\nhello",
    "lines ended by LF alone (RFC 9112 2.2)": b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
    "CR inside a line (RFC 9112 2.2)": OK + b"X: a\rb\r\nContent-Length: 5\r\n\r\nhello",
    "a head that is cut off": b"HTTP/1.1 200 OK\r\nContent-Le",
}


def refuse(name: str, wire: bytes) -> None:
    @check(f"refused: {name}", "openssl-raw")
    def refused(lab):
        run = ask(lab, "ambiguous", wire)
        if lab.client.is_curl and run.code == 0:
            raise Skipped("curl is more lenient")
        run.expect_failure()
        expect_eq("output", run.out, b"")


for case, answer in AMBIGUOUS.items():
    refuse(case, answer)
