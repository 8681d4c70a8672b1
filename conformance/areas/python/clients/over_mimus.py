"""A plugin for pytest by which the tests of httpx talk HTTP through Mimus's transports.

httpx's own transports stay what they are, but for what sends a request. Environment:

    SUITE_OVER      mimus; anything else leaves httpx's own transports, to know what passes with those
    SUITE_RESULTS   where to write, as JSON, each test's outcome and whether it sent a request
"""

import functools
import importlib
import json
import os

import httpx
import pytest

OURS = importlib.import_module("mimus.httpx") if os.environ.get("SUITE_OVER") == "mimus" else None


class Results:
    def __init__(self):
        self.outcomes = {}
        self.sent = False

    def begin(self):
        self.sent = False

    def note(self, report):
        known = self.outcomes.setdefault(report.nodeid, {"outcome": "passed", "sent": False, "reason": ""})
        known["sent"] = known["sent"] or self.sent
        if report.outcome != "passed" and known["outcome"] != "failed":
            known["outcome"] = report.outcome
            crash = getattr(report.longrepr, "reprcrash", None)
            known["reason"] = crash.message.partition("\n")[0] if crash else str(report.longrepr)[-200:]


RESULTS = Results()


def divert(theirs, ours, send, close):
    """Has `theirs` send and close by a transport of `ours` that is made with the same arguments."""
    make, own_send, own_close = theirs.__init__, getattr(theirs, send), getattr(theirs, close)

    @functools.wraps(make)
    def remember(self, *args, **options):
        self.over_mimus = None
        self.options_over_mimus = args, {"trust_env": False} | options
        make(self, *args, **options)

    def transport(self):
        if self.over_mimus is None:
            args, options = self.options_over_mimus
            # It is httpx that offers HTTP/2 only where it is asked to.
            self.over_mimus = ours(*args, **{"http2": False} | options)
        return self.over_mimus

    @functools.wraps(own_send)
    def sent(self, request):
        RESULTS.sent = True
        if ours is None:
            return own_send(self, request)
        return getattr(transport(self), send)(request)

    @functools.wraps(own_close)
    def closed(self, *args):
        if ours is None or self.over_mimus is None:
            return own_close(self, *args)
        return getattr(self.over_mimus, close)(*args)

    theirs.__init__ = remember
    setattr(theirs, send, sent)
    setattr(theirs, close, closed)


def pytest_configure():
    divert(httpx.HTTPTransport, OURS and OURS.Transport, "handle_request", "close")
    divert(httpx.AsyncHTTPTransport, OURS and OURS.AsyncTransport, "handle_async_request", "aclose")


def pytest_runtest_setup():
    RESULTS.begin()


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    RESULTS.note(report)


def pytest_sessionfinish():
    with open(os.environ["SUITE_RESULTS"], "w", encoding="utf-8") as file:
        json.dump(RESULTS.outcomes, file, indent=1)
