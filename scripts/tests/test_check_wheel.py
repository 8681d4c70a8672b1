"""The check of wheels must find what makes one unfit."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import check_wheel  # noqa: E402

INFO = "mimus-0.1.0.dist-info"
EXTENSION = "mimus/_mimus.abi3.so"
PLUGIN = "pytest_mimus/__init__.py"


def members(**changed: bytes | None) -> dict[str, bytes]:
    names = ("METADATA", "WHEEL", "RECORD", "entry_points.txt")
    names += ("licenses/LICENSE-MIT", "licenses/LICENSE-APACHE")
    all = dict.fromkeys((f"{INFO}/{name}" for name in names), b"")
    all |= dict.fromkeys(("mimus/__init__.py", "mimus/_mimus.pyi", "mimus/py.typed", PLUGIN, EXTENSION), b"")
    all[f"{INFO}/WHEEL"] = b"Wheel-Version: 1.0\nTag: cp311-abi3-manylinux_2_17_x86_64\n"
    return {name: content for name, content in (all | changed).items() if content is not None}


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.sources = Path(folder.name)
        (self.sources / "mimus").mkdir()
        for name in ("__init__.py", "_mimus.pyi", "py.typed", "_mimus.abi3.so"):
            (self.sources / "mimus" / name).touch()
        (self.sources / PLUGIN).parent.mkdir()
        (self.sources / PLUGIN).touch()

    def wrong(self, **changed: bytes | None) -> list[str]:
        return check_wheel.files(members(**changed), self.sources)

    def test_what_belongs_there_is_enough(self):
        self.assertEqual(self.wrong(), [])

    def test_what_is_missing_is_named(self):
        for name in ("mimus/py.typed", "mimus/_mimus.pyi", PLUGIN, f"{INFO}/licenses/LICENSE-MIT"):
            self.assertEqual(self.wrong(**{name: None}), [f"lacks {name}"])

    def test_there_is_one_extension(self):
        self.assertIn("0 extensions", self.wrong(**{EXTENSION: None})[0])
        self.assertIn("2 extensions", self.wrong(**{"mimus/_mimus.cpython-314t-x86_64-linux-gnu.so": b""})[0])

    def test_nothing_else_comes_along(self):
        for name in ("mimus/tests/test.py", "mimus.libs/libfoo.so", "mimus/__pycache__/a.pyc"):
            self.assertEqual(self.wrong(**{name: b""}), [f"has {name}, which is no part of it"])


class Paths(unittest.TestCase):
    def test_places_of_the_machine_are_found_in_any_file(self):
        place = b"/home/somebody/mimus"
        for name in (EXTENSION, f"{INFO}/METADATA"):
            wrong = check_wheel.paths(members(**{name: b"\x7f\0" + place + b"/ssl.cc\0more"}), [place])
            self.assertEqual(wrong, [f"{name} tells of this machine: '/home/somebody/mimus/ssl.cc'"])
        self.assertEqual(check_wheel.paths(members(), [place]), [])


class Tags(unittest.TestCase):
    def wrong(self, name: str, **changed: bytes | None) -> list[str]:
        return check_wheel.tags(Path(name), "manylinux_2_17", members(**changed))

    def test_name_metadata_and_extension_agree(self):
        self.assertEqual(self.wrong("mimus-0.1.0-cp311-abi3-manylinux_2_17_x86_64.whl"), [])

    def test_the_platform_may_have_its_old_name_too(self):
        tags = b"Tag: cp311-abi3-manylinux2014_x86_64\nTag: cp311-abi3-manylinux_2_17_x86_64\n"
        name = "mimus-0.1.0-cp311-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
        self.assertEqual(self.wrong(name, **{f"{INFO}/WHEEL": tags}), [])
        newer = tags.replace(b"2_17", b"2_28")
        self.assertEqual(len(self.wrong(name.replace("2_17", "2_28"), **{f"{INFO}/WHEEL": newer})), 1)

    def test_another_tag_inside_is_told(self):
        self.assertEqual(len(self.wrong("mimus-0.1.0-cp312-abi3-manylinux_2_17_x86_64.whl")), 1)

    def test_a_platform_that_was_not_asked_for_is_told(self):
        tag = b"Tag: cp311-abi3-linux_x86_64\n"
        wrong = self.wrong("mimus-0.1.0-cp311-abi3-linux_x86_64.whl", **{f"{INFO}/WHEEL": tag})
        self.assertEqual(wrong, ["is for linux_x86_64, not manylinux_2_17"])

    def test_an_extension_of_another_abi_is_told(self):
        tag = b"Tag: cp314-cp314t-manylinux_2_17_x86_64\n"
        name = "mimus-0.1.0-cp314-cp314t-manylinux_2_17_x86_64.whl"
        self.assertEqual(len(self.wrong(name, **{f"{INFO}/WHEEL": tag})), 1)
        own = {EXTENSION: None, "mimus/_mimus.cpython-314t-x86_64-linux-gnu.so": b""}
        self.assertEqual(self.wrong(name, **{f"{INFO}/WHEEL": tag} | own), [])


if __name__ == "__main__":
    unittest.main()
