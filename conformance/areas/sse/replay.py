"""Sends the cases of wpt.json: `/streams/<number>/<bytes a piece>` and `/answers/<number>/0`."""

from __future__ import annotations

import http.server
import json
import sys
from pathlib import Path

CASES = json.loads((Path(__file__).resolve().parent / "wpt.json").read_text())


def body_of(case: dict) -> bytes:
    """The bytes of a case, from its parts."""
    parts = [part if isinstance(part, str) else part["text"] * part["times"] for part in case["body"]]
    return "".join(parts).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        _, kind, number, piece = self.path.split("/")
        case = CASES[kind][int(number)]
        self.send_response(case.get("status", 200))
        self.send_header("Content-Type", case.get("content_type", "text/event-stream"))
        body = body_of(case) if kind == "streams" else b"data: data\n\n"
        if case.get("status") in (204, 205):
            # Neither has a body, whatever the case is about (RFC 9110 sections 15.3.5 and 15.3.6).
            body = b""
        if case.get("status") != 204:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        size = int(piece) or max(len(body), 1)
        for at in range(0, len(body), size):
            part = body[at : at + size]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        if case.get("status") != 204:
            self.wfile.write(b"0\r\n\r\n")


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
