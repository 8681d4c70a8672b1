"""What the browsers sent, from `facts.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from areas.profiles.hello import Hello

HERE = Path(__file__).resolve().parent
RAW = HERE.parents[2] / "crates" / "proto" / "tests" / "data" / "hellos"


@dataclass(frozen=True)
class Build:
    """One browser that was captured, and the profile that is to equal it."""

    name: str
    profile: str
    hellos: dict[str, dict]
    http: dict

    @property
    def is_firefox(self) -> bool:
        return self.name.startswith("firefox")

    def raw(self, scenario: str) -> Hello | None:
        """One of the hellos as it was captured, byte for byte."""
        path = RAW / (f"{self.name}.bin" if scenario == "h2" else f"{self.name}-{scenario}.bin")
        return Hello.read(path.read_bytes()) if path.exists() else None


def _builds() -> list[Build]:
    facts = json.loads((HERE / "facts.json").read_text())
    return [Build(name, **its) for name, its in sorted(facts.items())]


BUILDS = _builds()

# What public tables print of browsers of which there is no capture; the profiles' files name the tables.
PUBLISHED: dict[str, dict] = json.loads((HERE / "published.json").read_text())

# Those that are for a platform; the others are what these extend.
PROFILES = sorted(
    path.stem
    for path in (HERE.parents[2] / "crates/client/src/profile/data").glob("*.toml")
    if path.stem.endswith(("-linux", "-windows", "-macos", "-android", "-ios"))
)


def ech_of(build: Build, scenario: str) -> set[tuple[int, ...]]:
    """What GREASE ECH may look like: Chromium draws its length anew each time, in every version from the same
    four, so those seen with any hello count; Firefox's depends on what else the hello has, its AEAD does not."""
    if not build.is_firefox:
        hellos = (its for one in BUILDS if not one.is_firefox for its in one.hellos.values())
        return {tuple(each) for its in hellos for each in its["ech"]}
    seen = {tuple(each) for each in build.hellos[scenario]["ech"]}
    aeads = {each[1] for its in build.hellos.values() for each in its["ech"]}
    return {(kdf, aead, key, length) for kdf, _, key, length in seen for aead in aeads}
