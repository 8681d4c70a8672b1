"""What the guide shows runs as it stands."""

import pathlib
import re
import subprocess

import pytest

from examples import ROOT, examples

GUIDE = "docs/PYTHON.md"
SHOWN = examples(GUIDE)


@pytest.fixture
def folder(origin, tmp_path, monkeypatch):
    """Where an example runs: with the files that it names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))
    pathlib.Path("ca.pem").write_bytes(origin.ca.read_bytes())
    return tmp_path


@pytest.fixture(scope="session")
def identity(tmp_path_factory):
    """A certificate, and its key encrypted with "password"."""
    folder = tmp_path_factory.mktemp("identity")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-subj", "/CN=client", "-days", "2",
               "-passout", "pass:password", "-keyout", folder / "client.key", "-out", folder / "client.pem"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return folder


# The plugin, which makes its marker known, is not installed where the package is not.
@pytest.mark.filterwarnings("ignore:Unknown pytest.mark.mimus_mock")
@pytest.mark.parametrize("example", SHOWN, ids=[f"{example.name}-{example.line}" for example in SHOWN])
def test_an_example_of_the_guide_runs(origin, folder, identity, example):
    for name in ("client.pem", "client.key"):
        (folder / name).write_bytes((identity / name).read_bytes())
    address, port = origin.http.removeprefix("http://").split(":")
    example.run({
        "wss://example.com/chat": origin.url("/ws/echo"),
        "https://example.com/events": origin.url("/sse?total=2&ms=0"),
        # Before the host alone, which is in a mapping of names to addresses.
        "https://example.com": origin.http,
        "https://secure.example": origin.https,
        "http://proxy.example:3128": origin.url("", "proxy"),
        "proxy.example:3128": origin.url("", "proxy").removeprefix("http://"),
        "example.com": f"{address}:{port}",
        "192.0.2.7": address,
    })


def test_its_headings_are_where_it_points():
    text = (ROOT / GUIDE).read_text(encoding="utf-8")
    headings = {re.sub(r"[^\w -]", "", line).strip().replace(" ", "-").lower()
                for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}  # fmt: skip
    named = set(re.findall(r"\]\(#([^)]*)\)", text))
    assert named and named <= headings
