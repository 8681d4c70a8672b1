"""What is told about a connection. It belongs to the client, so that nobody else reads from it."""

from typing import Any

from mimus import AsyncResponse, Response, TlsInfo


class NetworkStream:
    """The connection that an answer came over."""

    def __init__(self, answer: Response | AsyncResponse) -> None:
        self._answer = answer

    def get_extra_info(self, info: str) -> Any:
        """One thing about it, or None where it is not known.

        Args:
            info: "client_addr" and "server_addr", each (address, port); "ssl_object", which tells what TLS agreed on.
        """
        if info == "client_addr":
            return self._answer.local_addr
        if info == "server_addr":
            return self._answer.remote_addr
        if info == "ssl_object":
            tls = self._answer.tls
            return None if tls is None else TlsObject(tls)
        return None


class TlsObject:
    """What TLS agreed on, under the names that `ssl.SSLObject` has for it."""

    def __init__(self, tls: TlsInfo) -> None:
        self._tls = tls

    def version(self) -> str:
        """The version, as "TLSv1.3"."""
        return self._tls.version

    def cipher(self) -> tuple[str, str, None]:
        """The name of the cipher suite, and what follows it elsewhere: the version, and None for its bits."""
        return self._tls.cipher, self._tls.version, None

    def selected_alpn_protocol(self) -> str | None:
        """The protocol that ALPN chose, or None."""
        return self._tls.alpn

    def getpeercert(self, binary_form: bool = False) -> bytes | dict[str, Any] | None:
        """The server's certificate in DER; without `binary_form` an empty mapping, as it is not taken apart here."""
        return self._tls.certificate if binary_form else {}
