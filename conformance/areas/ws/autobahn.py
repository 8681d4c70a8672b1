"""Autobahn TestSuite's fuzzing server: what it found right and wrong, over HTTP/1.1 and over HTTP/2."""

from __future__ import annotations

from collections import Counter

from harness.checks import Book, expect

from areas.ws.servers import drive

book = Book()

RIGHT = {"OK", "NON-STRICT", "INFORMATIONAL"}
SLOW = 2400
"""Seconds that all cases of compression may take."""


def judge(lab, server: str, url: str, *flags: str, hang: int = 300) -> None:
    """Takes every case of the server, prints the summary of its report, and fails where one is wrong."""
    agent = "mimus-h2" if "--http2" in flags else "mimus"
    count = int(drive(lab, "autobahn", url, "--agent", agent, *flags, hang=hang).split()[0])
    report = lab.server(server).report(agent)
    expect(len(report) == count, f"{len(report)} of {count} cases are in the report")
    found = Counter(case["behavior"] for case in report.values())
    closed = Counter(case["behaviorClose"] for case in report.values())
    words = lambda counts: ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))  # noqa: E731
    print(f"       Autobahn, {server}, {agent}: {words(found)}; closing: {words(closed)}", flush=True)
    wrong = {
        name: f"{case['behavior']}/{case['behaviorClose']}"
        for name, case in report.items()
        if not {case["behavior"], case["behaviorClose"]} <= RIGHT
    }
    expect(not wrong, f"{len(wrong)} of {count} cases: {dict(sorted(wrong.items())[:12])}")


def both(name: str, server: str, *flags: str, slow: bool = False, hang: int = 300) -> None:
    """The check over HTTP/1.1, and through HAProxy over HTTP/2."""

    @book.check(f"Autobahn's {name}, HTTP/1.1", server, slow=slow)
    def one(lab) -> None:
        url = f"ws://127.0.0.1:{lab.server(server).port}"
        judge(lab, server, url, *flags, hang=hang)

    @book.check(f"Autobahn's {name}, HTTP/2", server, "haproxy", slow=slow)
    def two(lab) -> None:
        judge(lab, server, lab.server("haproxy").url(server), "--http2", *flags, hang=hang)


both("frames, text and closing", "autobahn")
both("large messages", "autobahn-large", slow=True)
both("compression, a part", "autobahn-some-deflate", "--deflate")
both("compression, all", "autobahn-deflate", "--deflate", slow=True, hang=SLOW)
