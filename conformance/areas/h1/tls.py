"""TLS under HTTP/1.1: versions, certificates, names, resumption."""

from harness.checks import Book, expect_eq, expect_in

book = Book()
check = book.check


def tls_facts(lab, kind: str, *args: str, host: str = "localhost", count: int = 1) -> list[dict[str, str]]:
    """What nginx says of its connection with the client."""
    url = lab.server("nginx").url("/tls", kind, host)
    got = lab.client.many("--cacert", lab.pki.ca.cert, *args, *[url] * count, count=count)
    names = ("protocol", "sni", "alpn", "reused", "subject")
    return [dict(zip(names, one.expect_status(200).text.split("|"), strict=True)) for one in got]


@check("a server that speaks TLS 1.2 only", "openssl-tls12")
def tls12(lab):
    run = lab.client.run("-sS", "--cacert", lab.pki.ca.cert, lab.server("openssl-tls12").url()).expect_code(0)
    expect_in("page", b"TLSv1.2", run.out)


@check("a server that speaks TLS 1.3 only; HTTP/1.0, ended by closing", "openssl-tls13")
def tls13(lab):
    run = lab.client.run("-sS", "--cacert", lab.pki.ca.cert, lab.server("openssl-tls13").url()).expect_code(0)
    expect_in("page", b"TLSv1.3", run.out)
    expect_in("end of the page", b"</HTML>", run.out.upper()[-40:])


@check("the newest common version is chosen", "nginx")
def newest(lab):
    expect_eq("protocol", tls_facts(lab, "tls")[0]["protocol"], "TLSv1.3")


@check("--tls-max 1.2 holds", "nginx", "openssl-tls13")
def tls_max(lab):
    expect_eq("protocol", tls_facts(lab, "tls", "--tls-max", "1.2")[0]["protocol"], "TLSv1.2")
    url = lab.server("openssl-tls13").url()
    lab.client.run("-sS", "--cacert", lab.pki.ca.cert, "--tls-max", "1.2", url).expect_code(35)


@check("a name is sent as SNI, an address is not (RFC 6066 3)", "nginx")
def sni(lab):
    expect_eq("SNI for a name", tls_facts(lab, "tls")[0]["sni"], "localhost")
    expect_eq("SNI for an address", tls_facts(lab, "tls", host="127.0.0.1")[0]["sni"], "")


@check("ALPN agrees on http/1.1 (RFC 7301)", "nginx")
def alpn(lab):
    expect_eq("ALPN", tls_facts(lab, "tls")[0]["alpn"], "http/1.1")


@check("a second connection resumes the session, TLS 1.3 and 1.2", "nginx")
def resumption(lab):
    for args in ((), ("--tls-max", "1.2")):
        facts = tls_facts(lab, "tls_close", *args, count=3)
        expect_eq("resumed", [fact["reused"] for fact in facts], [".", "r", "r"])


def certificate_error(lab, kind: str, *args) -> None:
    """Refused with 60, and accepted with -k, which proves that only the certificate was wrong."""
    url = lab.server("nginx").url("/size-1", kind, "localhost")
    run = lab.client.run("-sS", *args, url).expect_code(60)
    expect_eq("output", run.out, b"")
    lab.client.one("-k", url).expect_status(200)


@check("an authority nobody trusts (exit 60)", "nginx")
def unknown_authority(lab):
    certificate_error(lab, "tls")


@check("an expired certificate (exit 60)", "nginx")
def expired(lab):
    certificate_error(lab, "expired", "--cacert", lab.pki.ca.cert)


@check("a certificate for another name (exit 60)", "nginx")
def other_name(lab):
    certificate_error(lab, "other_name", "--cacert", lab.pki.ca.cert)


@check("a certificate for another name, asked for by that name", "nginx")
def right_name(lab):
    nginx = lab.server("nginx")
    port = nginx.port["other_name"]
    lab.client.one(
        "--cacert", lab.pki.ca.cert, "--resolve", f"other.test:{port}:127.0.0.1",
        nginx.url("/size-1", "other_name", "other.test"),
    ).expect_status(200)  # fmt: skip


@check("a self-signed certificate (exit 60)", "nginx")
def self_signed(lab):
    certificate_error(lab, "self_signed", "--cacert", lab.pki.ca.cert)


@check("an address in the certificate's names is accepted", "nginx")
def address_name(lab):
    lab.client.one("--cacert", lab.pki.ca.cert, lab.server("nginx").url("/size-1", "tls")).expect_status(200)


@check("a client certificate, when asked for one", "nginx")
def client_certificate(lab):
    pair = lab.pki.client
    facts = tls_facts(lab, "mtls", "--cert", str(pair.cert), "--key", str(pair.key))
    expect_eq("subject", facts[0]["subject"], "CN=client")
    url = lab.server("nginx").url("/tls", "mtls")
    # nginx lets the handshake pass and answers 400: "No required SSL certificate was sent".
    lab.client.one("--cacert", lab.pki.ca.cert, url).expect_status(400)


@check("https to a port that speaks plain HTTP (exit 35)", "httpbin")
def not_tls(lab):
    url = lab.server("httpbin").url("/get").replace("http:", "https:")
    lab.client.run("-sS", url, hang=20).expect_code(35)


@check("http to a port that speaks TLS keeps the server's complaint", "nginx")
def not_plain(lab):
    url = lab.server("nginx").url("/size-1", "tls").replace("https:", "http:")
    lab.client.one(url).expect_status(400)
