"""The connect conformance runner's gRPC part: servers of its own, calls that the driver makes."""

import re
import subprocess

from harness.checks import Book, Failed, Skipped
from harness.servers import Unavailable, find

from areas.grpc.servers import driver

book = Book()
check = book.check

# What the whole run may take; it takes some seconds.
HANG = 300

CONFIG = """
features:
  versions: [HTTP_VERSION_2]
  protocols: [PROTOCOL_GRPC]
  codecs: [CODEC_PROTO]
  compressions: [COMPRESSION_IDENTITY, COMPRESSION_GZIP]
  streamTypes:
    - STREAM_TYPE_UNARY
    - STREAM_TYPE_CLIENT_STREAM
    - STREAM_TYPE_SERVER_STREAM
    - STREAM_TYPE_HALF_DUPLEX_BIDI_STREAM
    - STREAM_TYPE_FULL_DUPLEX_BIDI_STREAM
  supportsTls: true
  supportsTlsClientCerts: true
  supportsH2c: true
  supportsTrailers: true
  supportsHalfDuplexBidiOverHttp1: false
  supportsConnectGet: false
  supportsMessageReceiveLimit: true
"""

# What every client fails, the runner's own included.
KNOWN = ("**/server-stream/incomplete-message", "**/server-stream/incomplete-message-prefix")

SUMMARY = re.compile(r"Total cases: (\d+)\s+(\d+) passed, (\d+) failed")
FAILURE = re.compile(r"^FAILED: (.*?):?$", re.MULTILINE)
CASES = 646


@check("connect conformance: 646 gRPC cases")
def conformance(lab):
    try:
        program = find("connectconformance", lab.tools)
    except Unavailable as absent:
        raise Skipped(str(absent)) from None
    client = driver(lab, "referenceclient")
    config = lab.folder / "connect.yaml"
    config.write_text(CONFIG)
    flaky = [part for pattern in KNOWN for part in ("--known-flaky", pattern)]
    command = [program, "--mode", "client", "--conf", str(config), *flaky, "--", client]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=HANG, env=lab.client.environment(None)
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"still running after {HANG} s") from None
    said = done.stdout + done.stderr
    (lab.folder / "connectconformance.log").write_text(said)
    summary = SUMMARY.search(said)
    if summary is None:
        raise Failed(f"the runner ended without a summary: {said.strip()[-200:]}")
    total, passed, failed = map(int, summary.groups())
    if done.returncode != 0 or failed or total != CASES:
        names = "; ".join(FAILURE.findall(said)[:5])
        raise Failed(f"{total} cases, {passed} passed, {failed} failed: {names}")
