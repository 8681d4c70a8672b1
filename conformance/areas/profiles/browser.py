"""Runs a real browser without a window, so that it asks the recorder for a page."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.checks import Failed, Skipped
from harness.client import CLEARED
from harness.lab import Lab

PATIENCE = 120.0
"""Seconds a browser may take to start and to show the page."""

PROGRAMS = {"chromium": ("chromium", "chromium-browser"), "firefox": ("firefox-esr", "firefox")}

# It shall talk to nobody but the recorder.
PREFERENCES = {
    "app.update.enabled": "false",
    "browser.aboutwelcome.enabled": "false",
    "browser.newtabpage.enabled": "false",
    "browser.preonboarding.enabled": "false",
    "browser.safebrowsing.malware.enabled": "false",
    "browser.safebrowsing.phishing.enabled": "false",
    "browser.shell.checkDefaultBrowser": "false",
    "datareporting.policy.dataSubmissionEnabled": "false",
    "datareporting.usage.uploadEnabled": "false",
    "network.captive-portal-service.enabled": "false",
    "network.connectivity-service.enabled": "false",
    "network.dns.localDomains": '"a.test,b.test"',
    "services.settings.server": '"https://127.0.0.1:9/"',
    "termsofuse.bypassNotification": "true",
    "toolkit.telemetry.reportingpolicy.firstRun": "false",
}


def program(*names: str) -> str:
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        raise Skipped(f"NO BROWSER: none of {', '.join(names)} is installed")
    if shutil.which("certutil") is None:
        raise Skipped("certutil is not installed (libnss3-tools): no browser can be told whom to trust")
    return found


def version(path: str) -> int:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
    found = re.search(r"(\d+)\.", done.stdout)
    if found is None:
        raise Failed(f"{path} does not say its version: {done.stdout!r} {done.stderr[-200:]!r}")
    return int(found[1])


def trusting(folder: Path, ca: Path) -> None:
    """A database of certificates with this one authority."""
    folder.mkdir(parents=True, exist_ok=True)
    for args in (["-N", "--empty-password"], ["-A", "-n", "conformance", "-t", "C,,", "-i", str(ca)]):
        done = subprocess.run(["certutil", "-d", f"sql:{folder}", *args], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"certutil: {done.stderr.strip()}")


def public_key_hash(cert: Path) -> str:
    key = openssl("x509", "-in", cert, "-pubkey", "-noout")
    der = openssl("pkey", "-pubin", "-outform", "DER", given=key)
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


def openssl(*args: str | Path, given: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *args], input=given, capture_output=True, check=True).stdout


def chromium(path: str, home: Path, ca: Path, cert: Path) -> list[str]:
    trusting(home / ".pki" / "nssdb", ca)
    return [
        path, "--headless", "--disable-gpu", "--no-sandbox", "--no-first-run", f"--user-data-dir={home}/data",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--host-resolver-rules=MAP *.test 127.0.0.1",
        f"--ignore-certificate-errors-spki-list={public_key_hash(cert)}",
    ]  # fmt: skip


def firefox(path: str, home: Path, ca: Path, _: Path) -> list[str]:
    data = home / "data"
    trusting(data, ca)
    lines = [f'user_pref("{name}", {value});\n' for name, value in PREFERENCES.items()]
    (data / "user.js").write_text("".join(lines))
    return [path, "--no-remote", "--profile", str(data), "--headless"]


MAKERS = {"chromium": chromium, "firefox": firefox}


@contextmanager
def opened(lab: Lab, kind: str, path: str, url: str, *flags: str) -> Iterator[subprocess.Popen]:
    """A browser that was started with this page, ended behind."""
    to = lab.server("go-capture")
    home = lab.scratch()
    command = [*MAKERS[kind](path, home, lab.pki.ca.cert, to.pair.cert), *flags, url]
    kept = {name: value for name, value in os.environ.items() if not CLEARED.fullmatch(name)}
    env = kept | {"HOME": str(home), "MOZ_DISABLE_CONTENT_SANDBOX": "1"}
    with (to.folder / f"{kind}.log").open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True
        )
    try:
        yield process
    finally:
        end(process)


def visit(lab: Lab, kind: str, path: str, url: str) -> None:
    """Shows the page until its script is done, then ends the browser."""
    to = lab.server("go-capture")
    before = to.said().count("done")
    with opened(lab, kind, path, url) as process:
        wait(process, kind, lambda: to.said().count("done") > before)


def wait(process: subprocess.Popen, kind: str, is_there: Callable[[], bool]) -> None:
    """Until the page has done what is waited for."""
    until = time.monotonic() + PATIENCE
    while not is_there():
        if process.poll() is not None:
            raise Failed(f"{kind} ended with {process.returncode} before it showed the page")
        if time.monotonic() > until:
            raise Failed(f"{kind} did not show the page in {PATIENCE:.0f} s")
        time.sleep(0.05)


def end(process: subprocess.Popen) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(timeout=10)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait()
