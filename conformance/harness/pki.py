"""A certificate authority of one's own, made with the `openssl` command."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "DNS:localhost,IP:127.0.0.1,IP:::1"


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, both PEM files."""

    cert: Path
    key: Path


class Pki:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.ca = self._self_signed("ca", "Mimus conformance CA", "critical,CA:TRUE", None)
        self.server = self.issue("server", LOOPBACK)
        self.other_name = self.issue("other-name", "DNS:other.test")
        self.expired = self.issue("expired", LOOPBACK, "20200101000000Z", "20200201000000Z")
        self.self_signed = self._self_signed("self-signed", "localhost", "CA:FALSE", LOOPBACK)
        self.client = self.issue("client", "DNS:someone.test")

    def openssl(self, *args: str | Path) -> None:
        done = subprocess.run(["openssl", *map(str, args)], capture_output=True, text=True, cwd=self.folder)
        if done.returncode != 0:
            raise RuntimeError(f"openssl {args[0]}: {done.stderr.strip()}")

    def pair(self, name: str) -> Pair:
        return Pair(self.folder / f"{name}.pem", self.folder / f"{name}.key")

    def _self_signed(self, name: str, common_name: str, constraints: str, names: str | None) -> Pair:
        pair = self.pair(name)
        extensions = ["-addext", f"basicConstraints={constraints}"]
        if names:
            extensions += ["-addext", f"subjectAltName={names}"]
        self.openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
            "-subj", f"/CN={common_name}", "-keyout", pair.key, "-out", pair.cert, *extensions,
        )  # fmt: skip
        return pair

    def issue(self, name: str, names: str, start: str = "", end: str = "") -> Pair:
        """A leaf for `names`, valid for a month or from `start` to `end` (YYYYMMDDHHMMSSZ)."""
        pair = self.pair(name)
        request = self.folder / f"{name}.csr"
        self.openssl(
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", f"/CN={name}", "-keyout", pair.key, "-out", request,
        )  # fmt: skip
        validity = ["-startdate", start, "-enddate", end] if start else ["-days", "30"]
        self.openssl(
            "ca", "-batch", "-notext", "-config", self._ca_config(name, names), "-in", request,
            "-out", pair.cert, *validity,
        )  # fmt: skip
        return pair

    def _ca_config(self, name: str, names: str) -> Path:
        config = self.folder / f"{name}.cnf"
        (self.folder / f"{name}.index").write_text("")
        config.write_text(f"""
[ca]
default_ca = own
[own]
database = {self.folder / name}.index
new_certs_dir = {self.folder}
certificate = {self.ca.cert}
private_key = {self.ca.key}
rand_serial = yes
default_md = sha256
policy = any
x509_extensions = leaf
unique_subject = no
[any]
commonName = supplied
[leaf]
basicConstraints = CA:FALSE
subjectAltName = {names}
extendedKeyUsage = serverAuth,clientAuth
""")
        return config
