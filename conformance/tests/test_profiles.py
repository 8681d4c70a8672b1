"""The area's own reader, against what another found in the same captures; and that it sees differences."""

import json
import sys
import unittest
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from areas.profiles import wire  # noqa: E402
from areas.profiles.facts import BUILDS, RAW  # noqa: E402
from areas.profiles.golden import expect_hello  # noqa: E402
from areas.profiles.hello import Hello  # noqa: E402
from areas.profiles.table import COLUMNS, table  # noqa: E402
from harness.checks import Failed  # noqa: E402


class Reader(unittest.TestCase):
    def test_prints_are_those_of_the_other_reader(self):
        expected = json.loads((RAW / "expected.json").read_text())
        for name, theirs in expected.items():
            with self.subTest(name):
                hello = Hello.read((RAW / f"{name}.bin").read_bytes())
                self.assertEqual(hello.ja4, theirs["ja4"])
                self.assertEqual(hello.ja3n, theirs["ja3n_hash"])
                self.assertEqual(hello.peetprint, theirs["peetprint_hash"])

    def test_captured_hellos_are_as_the_facts_say(self):
        seen = 0
        for build in BUILDS:
            for scenario in build.hellos:
                hello = build.raw(scenario)
                if hello is not None:
                    seen += 1
                    expect_hello(hello, build, scenario)
        self.assertGreaterEqual(seen, len(BUILDS))

    def test_a_hello_cut_short_is_an_error(self):
        whole = (RAW / "firefox-153.bin").read_bytes()
        for length in (0, 5, 60, len(whole) - 1):
            with self.assertRaises(ValueError):
                Hello.read(whole[:length])


class Differences(unittest.TestCase):
    def refused(self, name, change, scenario="h2"):
        build = next(build for build in BUILDS if build.name == name)
        with self.assertRaises(Failed):
            expect_hello(change(build.raw(scenario)), build, scenario)

    def test_firefox_in_another_order(self):
        self.refused("firefox-153", lambda hello: replace(hello, extensions=hello.extensions[::-1]))

    def test_chromium_with_grease_elsewhere(self):
        def moved(hello):
            first, *rest = hello.extensions
            return replace(hello, extensions=[rest[0], first, *rest[1:]])

        self.refused("chromium-156", moved)

    def test_one_extension_less(self):
        def without(hello):
            return replace(hello, extensions=[each for each in hello.extensions if each[0] != 5])

        for name in ("chromium-131", "firefox-159"):
            self.refused(name, without)

    def test_grease_where_the_browser_has_none(self):
        self.refused("firefox-140", lambda hello: replace(hello, ciphers=[0x0A0A, *hello.ciphers]))

    def test_another_length_of_grease_ech(self):
        def shorter(hello):
            its = [(n, shortened(data) if n == 0xFE0D else data) for n, data in hello.extensions]
            return replace(hello, extensions=its)

        def shortened(data):
            # Kind, suite, configuration, key; then the payload behind its length.
            before = data[: 1 + 4 + 1 + 2 + 32]
            payload = data[len(before) + 2 : -2]
            return before + len(payload).to_bytes(2) + payload

        self.refused("chromium-156", shorter)
        self.refused("firefox-159", shorter)

    def test_one_byte_of_a_frame(self):
        build = next(build for build in BUILDS if build.name == "firefox-153")
        theirs = [bytes.fromhex(frame) for frame in build.http["navigate"]["frames"]]
        wire.expect_frames(theirs, theirs)
        with self.assertRaises(Failed):
            wire.expect_frames([*theirs[:-1], theirs[-1][:-1] + b"\xff"], theirs)
        with self.assertRaises(Failed):
            wire.expect_frames(theirs[:-1], theirs)

    def test_updates_of_the_table_size_are_taken_out(self):
        frame = bytes.fromhex("00000a" + "01" + "25" + "00000003" + "0000000029" + "3fe11f" + "8287")
        taken = bytes.fromhex("000007" + "01" + "25" + "00000003" + "0000000029" + "8287")
        self.assertEqual(wire.without_size_updates(frame), taken)
        self.assertEqual(wire.without_size_updates(taken), taken)


class Table(unittest.TestCase):
    def test_cells_say_what_came_of_the_checks(self):
        name = BUILDS[0].profile
        text = table({
            f"{name}: {COLUMNS['order']}": ("ok", ""),
            f"{name}: {COLUMNS['h1']}": ("FAIL", "why"),
            f"{name}: {COLUMNS['ja4plus']}": ("skip", "ja4plus is not installed"),
        })  # fmt: skip
        row = next(line for line in text.splitlines() if line.startswith(f"| `{name}`"))
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        at = dict(zip(["profile", "captured", *COLUMNS], cells, strict=True))
        self.assertEqual([at["order"], at["h1"]], ["equal", "**differs**"])
        self.assertEqual([at["ja4plus"], at["prints"]], ["not checked", ""])


if __name__ == "__main__":
    unittest.main()
