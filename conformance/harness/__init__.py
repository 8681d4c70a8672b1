"""What every area needs: a client to drive, servers to start, certificates, checks and a report."""
