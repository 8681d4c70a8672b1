"""Each profile against the browser: ClientHello, the first flight of HTTP/2, the first header block.

The client shows itself (`mimus fingerprint`): it connects to a server of its own and prints what that
one read. A second judge, PyPI's `ja4plus`, reads the same bytes where it is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

from harness.checks import Book, Failed, Skipped, expect, expect_eq, expect_in

book = Book()

GOLDEN: dict[str, dict] = json.loads(Path(__file__).with_name("golden.json").read_text())

HELLOS = 50
"""Connections of each profile: enough for orders that repeat, and for each length of GREASE ECH."""

ECH, SERVER_NAME = 65037, 0

HOSTS = {"named": "https://a.test/", "address": "https://192.0.2.1/"}


def is_grease(number: int) -> bool:
    return number & 0x0F0F == 0x0A0A and number >> 8 == number & 0xFF


def golden(profile: str) -> tuple[dict, bool]:
    """What the browser sent; and whether its values are the profile's, too."""
    wanted = GOLDEN[profile]
    return (GOLDEN[wanted["like"]], False) if "like" in wanted else (wanted, True)


class Looks:
    """What the client showed of itself, asked for once."""

    def __init__(self, client) -> None:
        self.client = client

    @cache  # noqa: B019: it lives as long as the run
    def known(self) -> set[str]:
        run = self.client.run("profile", "list")
        if run.code != 0:
            raise Skipped("this client has no profiles")
        return {line.split()[0] for line in run.out.decode().splitlines() if line.strip()}

    @cache  # noqa: B019
    def hellos(self, profile: str, url: str, count: int) -> list[dict]:
        if profile not in self.known():
            raise Skipped(f"this client has no profile {profile}")
        shown = []
        for _ in range(count):
            run = self.client.run("fingerprint", "--jsonl", "--as", profile, url)
            if run.code != 0 and "lacks Mimus's patch" in run.err:
                raise Skipped("it takes a build with patched BoringSSL")
            shown.append(json.loads(run.expect_code(0).out))
        return shown


@cache
def looks(lab) -> Looks:
    return Looks(lab.client)


def order(shown: dict) -> list:
    types = [extension["type"] for extension in shown["tls"]["hello"]["extensions"]]
    return ["GREASE" if is_grease(number) else number for number in types]


def check_hello(lab, profile: str, kind: str) -> None:
    wanted = golden(profile)[0]["tls"][kind]
    shown = looks(lab).hellos(profile, HOSTS[kind], HELLOS)
    for name in ("ja4", "ja3n_hash", "peetprint_hash"):
        expect_eq(name, {one["tls"][name] for one in shown}, {wanted[name]})
    orders = [order(one) for one in shown]
    if wanted["order"] == "permuted":
        expect_eq("orders that differ", len({str(one) for one in orders}), len(orders))
    else:
        for one in orders:
            expect_eq("order", one, wanted["order"])
    payloads = set()
    for one in shown:
        for extension in one["tls"]["hello"]["extensions"]:
            if extension["type"] == ECH:
                expect_in("AEAD of GREASE ECH", extension["aead"], wanted["ech"]["aeads"])
                expect_in("key of GREASE ECH", extension["enc_len"], wanted["ech"]["enc"])
                payloads.add(extension["payload_len"])
            elif extension["type"] != SERVER_NAME:
                known = "GREASE" if is_grease(extension["type"]) else str(extension["type"])
                expect_in(f"length of {extension['name']}", extension["length"], wanted["lengths"][known])
    # Of four lengths, fifty draws leave one out once in half a million runs.
    expect_eq("lengths of GREASE ECH", sorted(payloads), sorted(wanted["ech"]["payloads"]))


def check_grease(lab, profile: str) -> None:
    """GREASE is where the browser has it: what the peetprint does not show."""
    wanted = golden(profile)[0]["tls"]["named"]
    for one in looks(lab).hellos(profile, HOSTS["named"], HELLOS):
        places = [index for index, what in enumerate(order(one)) if what == "GREASE"]
        last = len(one["tls"]["hello"]["extensions"]) - 1
        expect_eq("places of GREASE extensions", places, [0, last] if "GREASE" in wanted["lengths"] else [])


def check_http2(lab, profile: str) -> None:
    wanted, values = golden(profile)
    if "http2" not in wanted:
        raise Skipped("no capture of this build has HTTP/2 with the browser's own name")
    wanted = wanted["http2"]
    shown = looks(lab).hellos(profile, f"https://{wanted['authority']}/", 1)[0]["http2"]
    expect_eq("Akamai", shown["akamai"], wanted["akamai"])
    ours = [frame for frame in shown["frames"] if frame.get("flags") != "0x01" or frame["frame"] != "SETTINGS"]
    for index, theirs in enumerate(wanted["frames"]):
        expect(index < len(ours), f"{theirs['frame']} is missing")
        check_frame(ours[index], theirs, values)
    if values:
        block = next(frame["block"] for frame in ours if frame["frame"] == "HEADERS")
        expect_eq("header block", block, wanted["block"])


def check_frame(ours: dict, theirs: dict, values: bool) -> None:
    """All that the golden frame says; of another name's header fields, names and representations."""
    for key, value in theirs.items():
        if values or key not in ("headers", "length", "hpack"):
            expect_eq(f"{theirs['frame']}.{key}", ours.get(key), value)
    if "headers" in theirs:
        names = [[name for name, _ in frame["headers"]] for frame in (ours, theirs)]
        expect_eq("order of fields", *names)


# Not in this process: its package is no part of what runs the checks.
JUDGE = """
import json, sys
from ja4plus.fingerprinters.ja4 import generate_ja4
from ja4plus.utils.tls_utils import parse_tls_handshake
for line in sys.stdin:
    message = bytes.fromhex(line.strip())
    record = b"\\x16\\x03\\x01" + len(message).to_bytes(2, "big") + message
    print(generate_ja4(parse_tls_handshake(record)))
"""


def check_judged(lab, profile: str) -> None:
    python = lab.tools.parent / "ja4plus" / "bin" / "python"
    command = [str(python) if python.exists() else sys.executable, "-c", JUDGE]
    shown = looks(lab).hellos(profile, HOSTS["named"], HELLOS)
    messages = "".join(one["tls"]["message"] + "\n" for one in shown)
    done = subprocess.run(command, input=messages, capture_output=True, text=True, timeout=120)
    if "ModuleNotFoundError" in done.stderr:
        raise Skipped("ja4plus is not installed")
    if done.returncode != 0:
        raise Failed(f"the judge broke: {done.stderr.strip()[-200:]}")
    expect_eq("JA4", done.stdout.split(), [one["tls"]["ja4"] for one in shown])


def add(profile: str) -> None:
    wanted, _ = golden(profile)
    for kind in wanted["tls"]:
        book.check(f"{profile}: ClientHello to {'a name' if kind == 'named' else 'an address'}")(
            lambda lab, kind=kind: check_hello(lab, profile, kind)
        )
    book.check(f"{profile}: GREASE where the browser has it")(lambda lab: check_grease(lab, profile))
    book.check(f"{profile}: first flight of HTTP/2, a navigation's header block")(
        lambda lab: check_http2(lab, profile)
    )
    book.check(f"{profile}: JA4 as another program computes it")(lambda lab: check_judged(lab, profile))


for name in GOLDEN:
    add(name)
