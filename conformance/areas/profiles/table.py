"""The table of profiles by checks, for the documentation."""

from __future__ import annotations

from harness.checks import Failed

from areas.profiles.facts import BUILDS, HERE, PROFILES, PUBLISHED
from areas.profiles.golden import kin

BEGIN, END = "<!-- conformance: begin -->", "<!-- conformance: end -->"
DOCUMENT = HERE.parents[2] / "docs" / "PROFILES.md"

# A column, and the check it shows.
COLUMNS = {
    "prints": "JA4, JA3N, peetprint",
    "fields": "fields, GREASE",
    "order": "order",
    "ECH": "GREASE ECH",
    "ja4plus": "ja4plus",
    "own reader": "mimus fingerprint",
    "resumed": "resumed hello",
    "to an address": "hello to an address",
    "h2 opening": "HTTP/2 opening",
    "h2 page": "HTTP/2, page",
    "h2 fetch()": "HTTP/2, fetch()",
    "h1": "HTTP/1.1",
    "in the clear": "HTTP/1.1 in the clear",
    "WebSocket hello": "WebSocket hello",
    "WebSocket": "WebSocket",
}


def table(outcomes: dict[str, tuple[str, str]]) -> str:
    """`outcomes` holds each check's verdict and reason, by its name."""
    captured = {build.profile: build.name for build in BUILDS}
    of = captured | dict.fromkeys(PUBLISHED, "published")
    lines = [f"| profile | captured | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 2) + "|"]
    for profile in sorted(PROFILES, key=lambda name: (name not in captured, name)):
        its = of.get(profile) or f"({kin(profile).name})"
        cells = [cell(outcomes.get(f"{profile}: {check}", ("", ""))[0]) for check in COLUMNS.values()]
        lines.append(f"| `{profile}` | {its} | {' | '.join(cells)} |")
    # Twice: the cells share their bars.
    return "\n".join(line.replace("|  |", "| |").replace("|  |", "| |") for line in lines)


def cell(verdict: str) -> str:
    match verdict:
        case "ok":
            return "equal"
        case "FAIL":
            return "**differs**"
        case "skip":
            return "not checked"
    return ""


def write(text: str) -> None:
    document = DOCUMENT.read_text()
    before, begun, rest = document.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (begun and ended):
        raise Failed(f"{DOCUMENT.name} lacks {BEGIN} or {END}")
    DOCUMENT.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def report(outcomes: dict[str, tuple[str, str]], complete: bool, to_write: bool) -> None:
    """Prints the table of a run, and writes it where all was checked and nothing failed."""
    text = table(outcomes)
    print(f"\n{text}\n", flush=True)
    if not to_write:
        return
    if not complete or any(verdict == "FAIL" for verdict, _ in outcomes.values()):
        print("the table is not written: only that of a whole run is, in which nothing failed", flush=True)
        return
    write(text)
