"""The package as it was built, and virtual environments with other people's packages."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
from pathlib import Path

from harness.checks import Failed, Skipped

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "conformance" / "python"

INSTALL = 900
"""Seconds that an installation may take."""


def environment(lab, name: str) -> Path:
    """The interpreter of the environment `name`, with what `name`.txt lists; made where it is not there yet."""
    listed = SCRIPTS / f"{name}.txt"
    folder = lab.tools.parent / f"python-{name}"
    stamp = folder / "installed"
    wanted = hashlib.sha256(listed.read_bytes()).hexdigest()
    python = folder / "bin" / "python"
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    stamp.unlink(missing_ok=True)
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", str(listed)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL)
        if done.returncode != 0:
            why = (done.stderr.strip().splitlines() or ["no reason"])[-1]
            raise Skipped(f"what {listed.name} lists cannot be installed: {why}")
    stamp.write_text(wanted)
    return python


def package(lab) -> Path:
    """A folder with the package `mimus`: that of $MIMUS_PYTHON, or the sources with the library beside the client."""
    if given := os.environ.get("MIMUS_PYTHON"):
        return Path(given).resolve()
    library = Path(lab.client.program).parent / "lib_mimus.so"
    if lab.client.is_curl or not library.is_file():
        raise Skipped("the Python package is not built: cargo build -p mimus-python --features abi3")
    folder = lab.folder / "package"
    inside = folder / "mimus"
    if not inside.is_dir():
        inside.mkdir(parents=True)
        for entry in (ROOT / "python" / "mimus").iterdir():
            if entry.suffix != ".so":
                (inside / entry.name).symlink_to(entry)
        (inside / "_mimus.abi3.so").symlink_to(library)
    return folder


def sdist(lab, requirement: str) -> Path:
    """The unpacked source distribution of "name==version"."""
    name, _, version = requirement.partition("==")
    folder = lab.tools.parent / "python-sdists"
    unpacked = folder / f"{name}-{version}"
    if unpacked.is_dir():
        return unpacked
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(folder)]
    done = subprocess.run([*command, requirement], capture_output=True, text=True, timeout=INSTALL)
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["no reason"])[-1]
        raise Skipped(f"the source of {requirement} cannot be had: {why}")
    with tarfile.open(folder / f"{name}-{version}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return unpacked


def run(lab, python: Path, *words: str | Path, hang: float = 120, cwd: Path | None = None, **env: str) -> str:
    """Runs a Python program that must succeed, with the package on its path: what it wrote."""
    path = os.pathsep.join((str(package(lab)), str(SCRIPTS)))
    try:
        done = subprocess.run(
            [python, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=hang,
            env=lab.client.environment({"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"} | env), cwd=cwd,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Failed(f"still running after {hang:.0f} s") from None
    if done.returncode != 0:
        raise Failed(f"exit code {done.returncode}: {(done.stdout + done.stderr).strip()[-400:]}")
    return done.stdout
