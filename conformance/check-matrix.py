#!/usr/bin/env python3
"""Fails when a row of rfc-matrix.toml names a test that does not exist.

Looks for the function itself, with a #[test] attribute above it or in the list of `on_every_runtime!`, in
the file that the module path of the row leads to.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEYS = {"section": str, "must": str, "test": str}
# What names the specification: the number of an RFC, or a standard that has none.
SOURCES = {"rfc": int, "standard": str}


def packages() -> dict[str, Path]:
    """The directory of each package in the workspace, by name."""
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    found = {}
    for member in workspace["members"]:
        for manifest in sorted(ROOT.glob(f"{member}/Cargo.toml")):
            name = tomllib.loads(manifest.read_text())["package"]["name"]
            found[name] = manifest.parent
    return found


def candidates(package: Path, modules: list[str]) -> list[Path]:
    """Files in which a test of this module path may stand, innermost modules inline or not."""
    files = []
    for base, depth in ((package / "tests", 1), (package / "src", 0)):
        for length in range(len(modules), depth - 1, -1):
            stem = base.joinpath(*modules[:length])
            files += [stem.with_suffix(".rs")] if length else []
            files += [stem / name for name in ("main.rs", "mod.rs", "lib.rs")]
    return [file for file in files if file.is_file()]


def has_test(file: Path, function: str) -> bool:
    """Whether `function` stands in the file under a test attribute (others may stand between), or is one of
    those that run on every runtime."""
    text = file.read_text()
    pattern = rf"#\[(?:\w+::)*test[^\]]*\]\s*(?:#\[[^\]]*\]\s*|//[^\n]*\n\s*)*(?:async\s+)?fn\s+{function}\b"
    if re.search(pattern, text):
        return True
    listed = re.search(r"on_every_runtime!\(([^)]*)\)", text)
    return listed is not None and function in re.findall(r"\w+", listed[1])


def fault(row: dict, known: dict[str, Path]) -> str | None:
    """What is wrong with a row."""
    sources = [key for key in SOURCES if key in row]
    if len(sources) != 1 or not isinstance(row[sources[0]], SOURCES[sources[0]]):
        return "neither an rfc nor a standard"
    for key, kind in KEYS.items():
        if not isinstance(row.get(key), kind):
            return f"no {key}"
    if extra := row.keys() - (KEYS.keys() | SOURCES.keys()):
        return f"unknown keys {sorted(extra)}"
    package, *modules, function = row["test"].split("::")
    if package not in known:
        return f"no package {package}"
    if not any(has_test(file, function) for file in candidates(known[package], modules)):
        return f"no test {row['test']}"
    return None


def main() -> int:
    rows = tomllib.loads((ROOT / "conformance/rfc-matrix.toml").read_text()).get("row", [])
    known = packages()
    faults = [(row, found) for row in rows if (found := fault(row, known))]
    for row, found in faults:
        print(f"{row.get('standard') or row.get('rfc')} section {row.get('section')}: {found}", file=sys.stderr)
    print(f"{len(rows)} requirements, {len(rows) - len(faults)} with a test")
    return 1 if faults or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
