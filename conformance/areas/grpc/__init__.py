"""gRPC: the standard interop cases against grpc-go, and the connect conformance runner.

Both drive a program of their own, not the command line: `mimus-conformance-grpc`. Without arguments
it reads the runner's requests from its standard input; with grpc-go's flags (`--server_host`,
`--server_port`, `--test_case`, `--use_tls`, `--use_test_ca`,
`--ca_file`, `--server_host_override`) it makes one interop
case and prints `<case> ok` when it has passed. With `MIMUS=curl` the known-good drivers take its
place: grpc-go's own client, and the runner's.
"""

from areas.grpc import connect, interop
from areas.grpc.servers import SERVERS

CHECKS = [check for module in (interop, connect) for check in module.book.checks]

__all__ = ["CHECKS", "SERVERS"]
