"""Run by the Python that has ja4plus: for each line of hex, a client's first bytes, its JA4."""

import sys

from ja4plus.fingerprinters.ja4 import generate_ja4
from ja4plus.utils.tls_utils import extract_tls_info
from scapy.all import IP, TCP, Raw

for line in sys.stdin:
    packet = IP() / TCP(dport=443) / Raw(bytes.fromhex(line))
    print(generate_ja4(extract_tls_info(packet)))
