"""Talks with echo servers by other people: every size, many at once, pings, compression, closing."""

from __future__ import annotations

from harness.checks import Book, expect_eq

from areas.ws.servers import drive

book = Book()

# What to say to each: the path, and what the server knows.
COMPRESSING = ("websockets", "node-ws", "go")


def talk(lab, url: str, *flags: str) -> None:
    done = drive(lab, "echo", url, "--cacert", lab.pki.ca.cert, *flags)
    # A driver that has not talked must not pass.
    expect_eq("its last word", done, "echo ok")


def against(server: str, path: str = "") -> None:
    for secure, way in ((False, "ws"), (True, "wss")):
        for flags in ((), ("--deflate",)):
            if flags and server not in COMPRESSING:
                continue
            what = " compressed" if flags else ""
            name = f"{server}{' /' + path if path else ''} says{what} messages back over {way}"

            @book.check(name, server)
            def run(lab, secure=secure, flags=flags) -> None:
                talk(lab, lab.server(server).url(secure) + path, "--subprotocol", *flags)


against("websockets")
against("node-ws")
against("go")
against("go", "gorilla")
against("tungstenite")

for secure, way in ((False, "prior knowledge"), (True, "TLS")):
    for flags in ((), ("--deflate",)):

        @book.check(f"messages{' compressed' if flags else ''} come back over HTTP/2, {way}", "websockets", "haproxy")
        def over_http2(lab, secure=secure, flags=flags) -> None:
            url = lab.server("haproxy").url("websockets", secure)
            talk(lab, url + "/", "--http2", "--subprotocol", *flags)
