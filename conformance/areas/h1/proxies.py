"""Through proxies: forwarded, tunnelled, SOCKS; with and without a password."""

from urllib.parse import quote

from harness.checks import Book, expect, expect_eq, expect_in
from harness.servers import free_port

from areas.h1.servers import PASSWORD, USER

book = Book()
check = book.check


def seen(lab, *args: str, **options) -> dict[str, list[str]]:
    """The headers that reach the origin over plain HTTP."""
    url = lab.server("httpbin").url("/headers")
    return lab.client.one(*args, url, **options).expect_status(200).json()["headers"]


def secure(lab, *args: str, host: str = "127.0.0.1"):
    """One page over TLS, with the client's trust in our authority."""
    url = lab.server("nginx").url("/size-1023", "tls", host)
    got = lab.client.one("--cacert", lab.pki.ca.cert, *args, url).expect_status(200)
    expect_eq("length", len(got.body), 1023)


def secure_fails(lab, *args: str) -> None:
    url = lab.server("nginx").url("/size-1023", "tls")
    run = lab.client.run("-sS", "--cacert", lab.pki.ca.cert, *args, url, hang=20).expect_failure()
    expect(len(run.out) != 1023, "the page came through")


@check("tinyproxy forwards http", "tinyproxy", "httpbin")
def tinyproxy_plain(lab):
    expect_in("Via", "tinyproxy.test", seen(lab, "-x", lab.server("tinyproxy").url()).get("Via", [""])[0])


@check("tinyproxy tunnels https", "tinyproxy", "nginx")
def tinyproxy_tunnel(lab):
    proxy = lab.server("tinyproxy")
    secure(lab, "-x", proxy.url())
    expect_in("log", "CONNECT", proxy.said())


@check("tinyproxy with a password, by -U and in the URL", "tinyproxy-auth", "httpbin", "nginx")
def tinyproxy_password(lab):
    proxy = lab.server("tinyproxy-auth")
    for args in (("-x", proxy.url(), "-U", "someone:secret"), ("-x", proxy.url("someone:secret@"))):
        expect_in("Via", "tinyproxy-auth.test", seen(lab, *args)["Via"][0])
        secure(lab, *args)


@check("tinyproxy with a wrong password", "tinyproxy-auth", "httpbin", "nginx")
def tinyproxy_wrong(lab):
    args = ("-x", lab.server("tinyproxy-auth").url(), "-U", "someone:wrong")
    got = lab.client.one(*args, lab.server("httpbin").url("/get"))
    expect(got.status in (401, 407), f"status {got.status}")
    secure_fails(lab, *args)


@check("squid forwards http", "squid", "httpbin")
def squid_plain(lab):
    expect_in("Via", "squid.test", seen(lab, "-x", lab.server("squid").url()).get("Via", [""])[0])


@check("squid tunnels https", "squid", "nginx")
def squid_tunnel(lab):
    secure(lab, "-x", lab.server("squid").url())


@check("squid behind TLS of its own: forwards http, and tunnels TLS in TLS", "squid", "httpbin", "nginx")
def squid_secure(lab):
    # curl has a separate trust store for proxies; mimus has one.
    flag = "--proxy-cacert" if lab.client.is_curl else "--cacert"
    args = (flag, str(lab.pki.ca.cert), "-x", lab.server("squid").secure_url())
    expect_in("Via", "squid.test", seen(lab, *args).get("Via", [""])[0])
    secure(lab, *args)


@check("a proxy whose certificate nobody trusts (exit 60)", "squid", "httpbin")
def squid_untrusted(lab):
    url = lab.server("httpbin").url("/get")
    run = lab.client.run("-sS", "-x", lab.server("squid").secure_url(), url, hang=20).expect_code(60)
    expect_eq("output", run.out, b"")


@check("squid with a password that has a colon and spaces", "squid", "httpbin", "nginx")
def squid_password(lab):
    proxy = lab.server("squid")
    in_url = f"{USER}:{quote(PASSWORD, safe='')}@"
    for args in (("-x", proxy.url(asks=True), "-U", f"{USER}:{PASSWORD}"), ("-x", proxy.url(in_url, asks=True))):
        expect_in("Via", "squid.test", seen(lab, *args)["Via"][0])
        secure(lab, *args)


@check("squid without the password: 407, and no tunnel", "squid", "httpbin", "nginx")
def squid_refuses(lab):
    args = ("-x", lab.server("squid").url(asks=True))
    lab.client.one(*args, lab.server("httpbin").url("/get")).expect_status(407)
    secure_fails(lab, *args)


@check("the proxy's password does not reach the origin", "tinyproxy-auth", "httpbin", "nginx")
def password_stays(lab):
    proxy = lab.server("tinyproxy-auth")
    headers = seen(lab, "-x", proxy.url(), "-U", "someone:secret")
    expect("Proxy-Authorization" not in headers, "Proxy-Authorization reached the origin")


@check("a tunnel that the proxy refuses (exit 56 or 97)", "squid")
def tunnel_refused(lab):
    run = lab.client.run("-sS", "-k", "-x", lab.server("squid").url(), "https://forbidden.test/")
    expect_eq("output", run.expect_code(56, 97).out, b"")


@check("requests through a proxy share a connection", "squid", "httpbin", "nginx")
def shared(lab):
    proxy = lab.server("squid").url()
    for url in (lab.server("httpbin").url("/get"), lab.server("nginx").url("/size-1", "tls")):
        got = lab.client.many("--cacert", lab.pki.ca.cert, "-x", proxy, url, url, url, count=3)
        expect_eq("connections opened for the second and third", [one.connects for one in got[1:]], [0, 0])


@check("the environment names a proxy; --noproxy and no_proxy take it back", "squid", "httpbin")
def environment(lab):
    proxied = {"http_proxy": lab.server("squid").url()}
    expect("Via" in seen(lab, env=proxied), "http_proxy was ignored")
    expect("Via" not in seen(lab, "--noproxy", "127.0.0.1", env=proxied), "--noproxy was ignored")
    for name in ("no_proxy", "NO_PROXY"):
        expect("Via" not in seen(lab, env=proxied | {name: "127.0.0.1"}), f"{name} was ignored")


@check("HTTP_PROXY in capitals is not believed under CGI, which sets it from a header", "squid", "httpbin")
def httpoxy(lab):
    expect("Via" not in seen(lab, env={"HTTP_PROXY": lab.server("squid").url(), "REQUEST_METHOD": "GET"}), "HTTP_PROXY was used")


@check("a proxy that is not there (exit 7)", "httpbin")
def dead(lab):
    url = lab.server("httpbin").url("/get")
    lab.client.run("-sS", "-x", f"http://127.0.0.1:{free_port()}", url).expect_code(7)


@check("socks5 sends an address, socks5h the name", "microsocks", "httpbin")
def socks_names(lab):
    proxy, httpbin = lab.server("microsocks"), lab.server("httpbin")
    for scheme, wanted in (("socks5", "127.0.0.1"), ("socks5h", "localhost")):
        before = len(proxy.said())
        lab.client.one("-x", proxy.url(scheme), httpbin.url("/get", host="localhost")).expect_status(200)
        expect_in(f"what {scheme} asked for", f"connected to {wanted}:{httpbin.port}", proxy.said()[before:])


@check("socks5 carries TLS", "microsocks", "nginx")
def socks_tls(lab):
    secure(lab, "-x", lab.server("microsocks").url("socks5h"), host="localhost")


@check("socks5 with a password, right and wrong (RFC 1929)", "microsocks-auth", "httpbin")
def socks_password(lab):
    proxy, url = lab.server("microsocks-auth"), lab.server("httpbin").url("/get")
    lab.client.one("-x", proxy.url("socks5", "someone:secret@"), url).expect_status(200)
    lab.client.one("-x", proxy.url("socks5"), "-U", "someone:secret", url).expect_status(200)
    for wrong in ("someone:wrong@", ""):
        run = lab.client.run("-sS", "-x", proxy.url("socks5", wrong), url, hang=20).expect_failure()
        expect_eq("output", run.out, b"")


@check("socks5 to a port nobody listens on", "microsocks")
def socks_refused(lab):
    proxy = lab.server("microsocks").url("socks5")
    lab.client.run("-sS", "-x", proxy, f"http://127.0.0.1:{free_port()}/", hang=20).expect_failure()


@check("dante: socks4, socks5 and socks5h", "dante", "httpbin")
def dante(lab):
    proxy, httpbin = lab.server("dante"), lab.server("httpbin")
    for scheme in ("socks4", "socks5", "socks5h"):
        before = len(proxy.said())
        lab.client.one("-x", proxy.url(scheme), httpbin.url("/get", host="localhost")).expect_status(200)
        expect_in(f"log after {scheme}", f"127.0.0.1.{httpbin.port}", proxy.said()[before:])


@check("socks4a sends the name; dante does not know it, and its refusal is an error", "dante", "httpbin")
def socks4a(lab):
    proxy, httpbin = lab.server("dante"), lab.server("httpbin")
    url = httpbin.url("/get", host="localhost")
    run = lab.client.run("-sS", "-x", proxy.url("socks4a"), url, hang=20).expect_failure()
    expect_eq("output", run.out, b"")
    # SOCKS4a marks a name by an address 0.0.0.x; dante takes the mark for the address.
    expect_in("log", f"0.0.0.1.{httpbin.port}", proxy.said())
