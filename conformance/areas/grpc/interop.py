"""The standard interop cases (gRPC's interop-test-descriptions) that grpc-go's server takes."""

import re
import subprocess

from harness.checks import Book, Failed

from areas.grpc.servers import driver

book = Book()

# A case that hangs is a failure with this reason, not a run that never ends.
HANG = 60

CASES = (
    "empty_unary",
    "large_unary",
    "client_streaming",
    "server_streaming",
    "ping_pong",
    "empty_stream",
    "timeout_on_sleeping_server",
    "cancel_after_begin",
    "cancel_after_first_response",
    "status_code_and_message",
    "special_status_message",
    "custom_metadata",
    "unimplemented_method",
    "unimplemented_service",
)


def run(lab, server: str, case: str) -> None:
    program = driver(lab, "grpc-interop-client")
    port = lab.server(server).port
    command = [program, "--server_host=127.0.0.1", f"--server_port={port}", f"--test_case={case}"]
    if server.endswith("tls"):
        command += ["--use_tls=true", "--use_test_ca=true", f"--ca_file={lab.pki.ca.cert}", "--server_host_override=localhost"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG,
            # grpc-go's client says only with this what it has done.
            env=lab.client.environment({"GRPC_GO_LOG_SEVERITY_LEVEL": "info"}),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Failed(f"still running after {HANG} s") from None
    said = (done.stdout + done.stderr).strip()
    if done.returncode != 0:
        raise Failed(f"exit code {done.returncode}: {said[-200:]}")
    # A driver that does not know the case must not pass it by doing nothing.
    wanted = r"(?i)\[interop\] .* done" if lab.client.is_curl else rf"(?m)^{case} ok$"
    if not re.search(wanted, said):
        raise Failed(f"it did not say that it made the case: {said[-200:]!r}")


for server, way in (("grpc-go", "prior knowledge"), ("grpc-go-tls", "TLS")):
    for case in CASES:
        name = f"interop {case}, {way}"
        book.check(name, server)(lambda lab, server=server, case=case: run(lab, server, case))
