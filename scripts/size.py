#!/usr/bin/env python3
"""Prints the largest files and functions, and fails when one is over a wall.

A file counts all its lines, tests included. A function counts from the line of its `fn` (or `def`)
to the line of its closing brace, comments and blank lines included, attributes and docs above it
excluded. Tests and generated tables are listed apart: tests have walls but no budget, because a
table of cases is long by nature; a file with `@generated` among its first lines has a wider wall.
"""

import argparse
import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

GENERATED_MARK = "@generated"


@dataclass(frozen=True)
class Limits:
    """Lines: above `soft` is named, above `wall` fails. `soft` None means no budget."""

    file_soft: int | None
    file_wall: int
    fn_soft: int | None
    fn_wall: int


LIMITS = {
    "source": Limits(600, 900, 70, 120),
    "tests": Limits(None, 900, None, 120),
    "generated": Limits(None, 5000, None, 120),
}


@dataclass(frozen=True)
class Function:
    name: str
    line: int
    lines: int
    is_test: bool


@dataclass(frozen=True)
class Entry:
    """One row of the report: a file, or a function in it."""

    lines: int
    where: str


def mask_rust(text: str) -> str:
    """Blanks comments, strings and char literals, so that every brace left is a real one.

    Newlines stay, so offsets still give lines.
    """
    out: list[str] = []
    at = 0
    while at < len(text):
        end = literal_end(text, at)
        if end > at:
            out.append("".join(c if c == "\n" else " " for c in text[at:end]))
            at = end
        else:
            out.append(text[at])
            at += 1
    return "".join(out)


RAW_STRING = re.compile(r'(?:b|c)?r(#*)"')
PLAIN_STRING = re.compile(r'(?:b|c)?"')
CHAR = re.compile(r"b?'(?:\\(?:u\{[^}]*\}|x[0-9a-fA-F]{2}|.)|[^\\'\n])'", re.DOTALL)
RAW_IDENT = re.compile(r"r#(?=[A-Za-z_])")


def literal_end(text: str, at: int) -> int:
    """Where the comment or literal beginning at `at` ends; `at` itself when none begins there."""
    if text.startswith("//", at):
        end = text.find("\n", at)
        return len(text) if end < 0 else end
    if text.startswith("/*", at):
        return block_comment_end(text, at)
    if at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_") and text[at] not in "\"'":
        return at  # the middle of an identifier that ends in r, b or c
    if raw := RAW_STRING.match(text, at):
        close = '"' + raw.group(1)
        end = text.find(close, raw.end())
        return len(text) if end < 0 else end + len(close)
    if plain := PLAIN_STRING.match(text, at):
        return quoted_end(text, plain.end())
    if char := CHAR.match(text, at):  # anything else after a quote is a lifetime
        return char.end()
    if ident := RAW_IDENT.match(text, at):
        return ident.end()
    return at


def block_comment_end(text: str, at: int) -> int:
    """Rust's block comments nest."""
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(text, at):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)


def quoted_end(text: str, at: int) -> int:
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == '"':
            return at + 1
        else:
            at += 1
    return len(text)


def closing_brace(masked: str, at: int) -> int:
    """Offset of the brace that closes the one at `at`."""
    depth = 0
    for brace in re.compile(r"[{}]").finditer(masked, at):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return brace.start()
    return len(masked) - 1


def body_start(masked: str, at: int) -> int | None:
    """Offset of the body's `{` after a signature that goes on at `at`; None for a declaration.

    Braces inside parentheses, brackets and generics are const expressions: `Foo<{ N + 1 }>`.
    """
    depth = 0
    while at < len(masked):
        here = masked[at]
        if masked.startswith("->", at):
            at += 2
            continue
        if here in "([<":
            depth += 1
        elif here in ")]>":
            depth -= 1
        elif here == "{":
            if depth <= 0:
                return at
            at = closing_brace(masked, at)
        elif here == ";" and depth <= 0:
            return None
        at += 1
    return None


FN = re.compile(r"\bfn\s+(\$?\w+)")
TEST_MOD = re.compile(r"#\[cfg\((?:all\(|any\()?\s*test\b[^\]]*\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{")
TEST_FN = re.compile(r"#\[(?:\w+::)*test(?:\([^\]]*\))?\]\s*(?:#\[[^\]]*\]\s*)*(?:pub\s+)?(?:async\s+)?$")


def rust_functions(text: str) -> list[Function]:
    masked = mask_rust(text)
    test_spans = [(m.start(), closing_brace(masked, m.end() - 1)) for m in TEST_MOD.finditer(masked)]
    found = []
    for fn in FN.finditer(masked):
        start = body_start(masked, fn.end())
        if start is None:
            continue
        end = closing_brace(masked, start)
        first = masked.count("\n", 0, fn.start()) + 1
        lines = masked.count("\n", fn.start(), end) + 1
        is_test = any(a <= fn.start() <= b for a, b in test_spans) or bool(
            TEST_FN.search(masked[max(0, fn.start() - 400) : fn.start()])
        )
        found.append(Function(fn.group(1), first, lines, is_test))
    return found


def python_functions(text: str) -> list[Function]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        Function(node.name, node.lineno, node.end_lineno - node.lineno + 1, False)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, kinds)
    ]


def kind_of(path: Path, text: str) -> str:
    if GENERATED_MARK in "\n".join(text.splitlines()[:5]) and path.name != Path(__file__).name:
        return "generated"
    is_test = "tests" in path.parts or re.fullmatch(r"(?:.*_)?tests?|test_.*", path.stem)
    return "tests" if is_test else "source"


def tracked_files() -> list[Path]:
    """Tracked and new files, without what is ignored."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", "*.rs", "*.py"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [p for p in map(Path, sorted(listed.splitlines())) if p.is_file()]


def measure(paths: list[Path]) -> dict[str, tuple[list[Entry], list[Entry]]]:
    """For each kind: its files and its functions, largest first."""
    kinds = {kind: ([], []) for kind in LIMITS}
    for path in paths:
        text = path.read_text(encoding="utf-8")
        kind = kind_of(path, text)
        kinds[kind][0].append(Entry(len(text.splitlines()), str(path)))
        parse = rust_functions if path.suffix == ".rs" else python_functions
        for fn in parse(text):
            home = "tests" if fn.is_test and kind == "source" else kind
            kinds[home][1].append(Entry(fn.lines, f"{path}:{fn.line} {fn.name}"))
    for files, functions in kinds.values():
        files.sort(key=lambda e: -e.lines)
        functions.sort(key=lambda e: -e.lines)
    return kinds


def report(kind: str, files: list[Entry], functions: list[Entry], top: int) -> int:
    """Prints one kind; returns how many of its entries are over a wall."""
    total = sum(entry.lines for entry in files)
    print(f"{kind}: {len(files)} files, {total} lines, {len(functions)} functions")
    limits = LIMITS[kind]
    over = show("files", files, limits.file_soft, limits.file_wall, top)
    return over + show("functions", functions, limits.fn_soft, limits.fn_wall, top)


def show(what: str, entries: list[Entry], soft: int | None, wall: int, top: int) -> int:
    budget = f"budget {soft}, wall {wall}" if soft else f"wall {wall}"
    if entries:
        print(f"  largest {what} ({budget}):")
    over = 0
    for place, entry in enumerate(entries):
        word = ""
        if entry.lines > wall:
            word = "  OVER THE WALL"
            over += 1
        elif soft and entry.lines > soft:
            word = "  over the budget"
        if place < top or word:
            print(f"  {entry.lines:6}  {entry.where}{word}")
    return over


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--top", type=int, default=8, help="rows of each list (default 8)")
    parser.add_argument("paths", nargs="*", type=Path, help="files (default: all of the repository)")
    args = parser.parse_args()
    kinds = measure(args.paths or tracked_files())
    over = sum(report(kind, *lists, args.top) for kind, lists in kinds.items() if lists[0] or lists[1])
    if over:
        print(f"size: {over} over a wall", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
