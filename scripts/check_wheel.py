#!/usr/bin/env python3
"""Whether a wheel is fit to be given away: what it holds and does not hold, its tags, its extension.

    check_wheel.py [--platform TAG] [--nowhere PATH]... WHEEL...

`--nowhere` names a directory of this machine, of which nothing in the wheel may tell. Needs pyelftools, which comes
with auditwheel.
"""

from __future__ import annotations

import argparse
import io
import sys
import zipfile
from email.parser import BytesParser
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "python"

MAX_WHEEL = 8 << 20
MAX_EXTENSION = 16 << 20
"""Bytes; far from what it takes, for what would come to that is debug information."""

# The package, and the plugin that pytest finds.
PACKAGES = ("mimus", "pytest_mimus")
LICENCES = {"LICENSE-MIT", "LICENSE-APACHE"}

# What platforms were called before they were numbered (PEP 600): installers of that time know no other name.
ALIASES = {"manylinux_2_17": "manylinux2014", "manylinux_2_12": "manylinux2010", "manylinux_2_5": "manylinux1"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--platform", default="manylinux_2_17", help="what the platform's tag begins with")
    parser.add_argument("--nowhere", action="append", default=[], metavar="PATH")
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    options = parser.parse_args()
    places = [place.encode() for place in options.nowhere]
    wrong = [f"{wheel.name}: {what}" for wheel in options.wheels for what in check(wheel, options.platform, places)]
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


def check(wheel: Path, platform: str, places: list[bytes]) -> list[str]:
    """What is wrong with it."""
    with zipfile.ZipFile(wheel) as archive:
        members = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    wrong = files(members, SOURCES) + paths(members, places) + tags(wheel, platform, members)
    if wheel.stat().st_size > MAX_WHEEL:
        wrong.append(f"has {wheel.stat().st_size} bytes, over {MAX_WHEEL}")
    for name, content in members.items():
        if name.endswith(".so"):
            wrong += [f"{name} {what}" for what in extension(content)]
    size = sum(map(len, members.values()))
    print(f"{wheel.name}: {len(members)} files, {size} bytes, {wheel.stat().st_size} packed")
    return wrong


def files(members: dict[str, bytes], sources: Path) -> list[str]:
    """Every source, marker and licence, one extension, and nothing else."""
    info = next(name.partition("/")[0] for name in members if name.endswith(".dist-info/METADATA"))
    wanted = {
        path.relative_to(sources).as_posix()
        for package in PACKAGES
        for path in (sources / package).rglob("*")
        if path.suffix in {".py", ".pyi"} or path.name == "py.typed"
    }
    wanted |= {f"{info}/licenses/{name}" for name in LICENCES}
    wanted |= {f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
    wrong = [f"lacks {name}" for name in sorted(wanted - members.keys())]
    extra = members.keys() - wanted
    extensions = {name for name in extra if name.startswith("mimus/_mimus.") and name.endswith(".so")}
    if len(extensions) != 1:
        wrong.append(f"has {len(extensions)} extensions: {sorted(extensions)}")
    return wrong + [f"has {name}, which is no part of it" for name in sorted(extra - extensions)]


def paths(members: dict[str, bytes], places: list[bytes]) -> list[str]:
    """Where it tells of the machine that it was built on."""
    wrong = []
    for name, content in members.items():
        for place in places:
            at = content.find(place)
            if at >= 0:
                told = content[at : at + 120].partition(b"\0")[0].decode(errors="replace")
                wrong.append(f"{name} tells of this machine: {told!r}")
    return wrong


def tags(wheel: Path, platform: str, members: dict[str, bytes]) -> list[str]:
    """Whether its name, its metadata and its extension say the same."""
    *_, python, abi, platforms = wheel.stem.split("-")
    said = BytesParser().parsebytes(next(text for name, text in members.items() if name.endswith("/WHEEL")))
    named = {f"{python}-{abi}-{tag}" for tag in platforms.split(".")}
    wrong = []
    if set(said.get_all("Tag", [])) != named:
        wrong.append(f"is tagged {said.get_all('Tag')} inside")
    names = tuple(f"{name}_" for name in (platform, ALIASES.get(platform)) if name)
    if not all(tag.startswith(names) for tag in platforms.split(".")):
        wrong.append(f"is for {platforms}, not {platform}")
    suffix = ".abi3." if abi == "abi3" else f".cpython-{abi.removeprefix('cp')}-"
    if not any(name.startswith("mimus/_mimus" + suffix) for name in members):
        wrong.append(f"is for {abi}, and its extension is not")
    return wrong


def extension(content: bytes) -> list[str]:
    """Whether it is stripped, and shows nobody its symbols: Python's own `ssl` has many of the same names."""
    from elftools.elf.elffile import ELFFile

    wrong = []
    if len(content) > MAX_EXTENSION:
        wrong.append(f"has {len(content)} bytes, over {MAX_EXTENSION}")
    elf = ELFFile(io.BytesIO(content))
    for section in elf.iter_sections():
        if section.name == ".symtab" or section.name.startswith(".debug"):
            wrong.append(f"is not stripped: it has {section.name}")
    shown = exported(elf.get_section_by_name(".dynsym"))
    if shown != {"PyInit__mimus"}:
        wrong.append(f"exports {sorted(shown)[:8]}, not its beginning alone")
    return wrong


def exported(table) -> set[str]:
    return {
        symbol.name
        for symbol in (table.iter_symbols() if table else ())
        if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] in {"STB_GLOBAL", "STB_WEAK"}
    }


if __name__ == "__main__":
    sys.exit(main())
