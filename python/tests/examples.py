"""The Python that documents show, to be run as it stands."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Example:
    """A block of Python, under a heading of a document."""

    def __init__(self, document, line, heading, text):
        self.document = document
        self.line = line
        self.name = heading.replace(" ", "-").lower()
        self._text = text

    def run(self, elsewhere):
        """Runs it with each name on the left of `elsewhere` in place of that on its right; what it left behind.

        It is skipped where it imports a package that is not installed.
        """
        text = self._text
        for shown, meant in elsewhere.items():
            text = text.replace(shown, meant)
        assert "example" not in text, "it would go to somebody's host"
        for package in re.findall(r"^import (\w+)", text, re.MULTILINE):
            pytest.importorskip(package)
        names = {"__name__": "__main__"}
        # A traceback shows the line of the document.
        exec(compile("\n" * self.line + text, str(self.document), "exec"), names)  # noqa: S102
        return names


def examples(path):
    """The examples of the document at `path` below the repository."""
    document = ROOT / path
    found, heading, block = [], "", None
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(keepends=True), start=1):
        if block is not None:
            if line.startswith("```"):
                found.append(Example(document, block[0], heading, "".join(block[1:])))
                block = None
            else:
                block.append(line)
        elif line.startswith("```python"):
            block = [number]
        elif line.startswith("#"):
            heading = line.lstrip("# ").strip()
    return found
