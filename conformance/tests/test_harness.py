"""The runner must notice a client that does nothing, lies, or hangs, and must leave no server behind."""

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE))

from areas.h2 import h2spec  # noqa: E402
from harness.checks import Book, Failed, Skipped, expect_eq  # noqa: E402
from harness.client import Client  # noqa: E402
from harness.servers import Broken, Server, Unavailable, find, free_port  # noqa: E402


class Scratch(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def script(self, body: str) -> Path:
        path = self.folder / "client"
        path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && {{ echo fake 1; exit; }}\n{body}\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def client(self, body: str) -> Client:
        return Client(str(self.script(body)), self.folder)


class Clients(Scratch):
    def test_transfers_are_split_by_what_write_out_printed(self):
        client = self.client(r"printf 'a\nb\n@@200 1 0.25\n\n@@404 0 0.5\n'")
        first, second = client.many("http://x/", count=2)
        self.assertEqual((first.body, first.status, first.connects), (b"a\nb", 200, 1))
        self.assertEqual((second.body, second.status, second.seconds), (b"", 404, 0.5))

    def test_a_missing_transfer_fails(self):
        with self.assertRaisesRegex(Failed, "transfers"):
            self.client("true").one("http://x/")

    def test_another_exit_code_fails_with_the_complaint(self):
        with self.assertRaisesRegex(Failed, "exit code 7 instead of 0.*no route"):
            self.client("echo no route >&2; exit 7").one("http://x/")

    def test_a_client_that_hangs_is_ended(self):
        started = time.monotonic()
        with self.assertRaisesRegex(Failed, "still running"):
            self.client("exec sleep 60").run(hang=0.3)
        self.assertLess(time.monotonic() - started, 10)

    def test_proxies_of_whoever_runs_it_do_not_reach_the_client(self):
        os.environ["http_proxy"] = "http://elsewhere.invalid"
        self.addCleanup(os.environ.pop, "http_proxy")
        client = self.client('echo "[$http_proxy]"')
        self.assertEqual(client.run().out, b"[]\n")
        self.assertEqual(client.run(env={"http_proxy": "here"}).out, b"[here]\n")


class Sleeper(Server):
    """A server that never accepts, with a child."""

    name = "sleeper"

    def prepare(self):
        self.ports = [free_port()]
        return ["sh", "-c", self.command]


class Servers(Scratch):
    def test_one_that_is_not_installed_is_unavailable(self):
        with self.assertRaises(Unavailable):
            find("no-such-server-anywhere")

    def test_one_that_ends_at_once_is_broken_and_says_why(self):
        server = Sleeper(self)
        server.command = "echo bad option; exit 1"
        with self.assertRaisesRegex(Broken, "bad option"):
            server.start()

    def test_stopping_ends_the_children_too(self):
        server = Sleeper(self)
        port = free_port()
        serve = f"import socket,time; s=socket.create_server(('127.0.0.1',{port})); time.sleep(60)"
        server.command = f'{sys.executable} -c "{serve}" & wait'
        server.prepare = lambda: ["sh", "-c", server.command]
        server.start()
        server.ports = [port]
        server._await(port)
        server.stop()
        with self.assertRaises(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1)


class Runner(unittest.TestCase):
    def runner(self, *args: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, HERE / "run.py", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"CARGO_TARGET_DIR": self.target.name},
        )

    def setUp(self):
        self.target = tempfile.TemporaryDirectory()
        self.addCleanup(self.target.cleanup)

    def test_a_client_that_does_nothing_passes_nothing(self):
        # These need no server, so the test says the same on every machine.
        process = self.runner("--client", "true", "--match", r"exit (3|6|7)\)$", "h1")
        out, _ = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, out)
        self.assertRegex(out.splitlines()[-1], r"^0 passed, [1-9]\d* failed, \d+ skipped$")

    def test_an_unknown_area_is_an_error(self):
        _, err = (process := self.runner("no-such-area")).communicate(timeout=60)
        self.assertEqual(process.returncode, 2)
        self.assertIn("no such area", err)

    def test_nothing_to_run_is_not_success(self):
        process = self.runner("--client", "true", "--match", "matches nothing at all", "h1")
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 2)

    def test_an_interrupt_ends_it(self):
        client = Path(self.target.name, "client")
        client.write_text('#!/bin/sh\n[ "$1" = --version ] && { echo fake 1; exit; }\nexec sleep 60\n')
        client.chmod(0o755)
        process = self.runner("--client", str(client), "--match", r"exit 3", "h1")
        self.assertIn("checks with fake 1", process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, err)


class H2spec(Scratch):
    def failing(self, *seen: str) -> set[str]:
        told = "\n".join(f"  × {number}: case\n    Actual: {what}" for number, what in enumerate(seen))
        passed = h2spec.CASES - len(seen)
        judge = self.folder / "h2specd"
        judge.write_text(
            f"#!/bin/sh\ncat <<'END'\n{told}\nFailures:\n{told}\n"
            f"{h2spec.CASES} tests, {passed} passed, 0 skipped, {len(seen)} failed\nEND\n"
        )
        judge.chmod(0o755)
        lab = SimpleNamespace(client=self.client("true"), folder=self.folder, tools=self.folder)
        return h2spec.failing(lab, secure=False)

    def test_a_case_that_fails_is_told(self):
        self.assertEqual(self.failing("Timeout", "PING Frame"), {"0: case", "1: case"})

    def test_a_reset_is_the_close_that_was_wanted(self):
        reset = "Error: read tcp 127.0.0.1:1->127.0.0.1:2: read: connection reset by peer"
        self.assertEqual(self.failing(reset, "Error: unexpected EOF"), {"1: case"})


class Checks(unittest.TestCase):
    def test_an_expectation_names_both_sides(self):
        with self.assertRaisesRegex(Failed, "status: 404 instead of 200"):
            expect_eq("status", 404, 200)

    def test_a_book_keeps_the_order(self):
        book = Book()
        book.check("a")(lambda lab: None)
        book.check("b", "nginx", slow=True)(lambda lab: None)
        self.assertEqual([(c.name, c.needs, c.slow) for c in book.checks], [("a", (), False), ("b", ("nginx",), True)])

    def test_skipped_is_not_failed(self):
        self.assertFalse(issubclass(Skipped, Failed))


if __name__ == "__main__":
    unittest.main()
