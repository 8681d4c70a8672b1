"""Requests and answers over HTTP/2: versions, bodies both ways, heads, trailers, 1xx."""

import hashlib

from harness.checks import Book, expect, expect_eq, expect_in, sha256

from areas.h2.servers import BIG, SIZES, curl_cannot, noise, twice

book = Book()
check = book.check
on_both = twice(book)

@on_both("each server is spoken to in HTTP/2", "nginx", "go")
def version(lab, secure):
    expect_eq("nginx", lab.client.one(*lab.server("nginx").ask(secure, "/protocol")).text, "HTTP/2.0")
    expect_eq("Go", lab.client.one(*lab.server("go").ask(secure, "/echo")).json()["proto"], "HTTP/2.0")


@check("ALPN chooses HTTP/2 unasked, HTTP/1.1 where it is all there is (RFC 7301)", "nginx")
def alpn(lab):
    nginx = lab.server("nginx")
    trust = ["--cacert", str(lab.pki.ca.cert)]
    expect_eq("unasked", lab.client.one(*trust, nginx.url("/protocol", secure=True)).text, "HTTP/2.0")
    got = lab.client.one(*trust, "--http1.1", nginx.url("/protocol", secure=True))
    expect_eq("asked for 1.1", got.text, "HTTP/1.1")
    old = f"https://127.0.0.1:{nginx.one_secure}/protocol"
    expect_eq("a server without h2", lab.client.one(*trust, "--http2", old).text, "HTTP/1.1")


@check("prior knowledge of what is not so is an error, not an answer", "nginx")
def wrong_knowledge(lab):
    url = f"http://127.0.0.1:{lab.server('nginx').one}/size-1"
    lab.client.run("-sS", "--http2-prior-knowledge", url, hang=20).expect_failure()


def sizes_from(lab, name, secure):
    server = lab.server(name)
    for size in SIZES:
        got = lab.client.one(*server.ask(secure, f"/size-{size}")).expect_status(200)
        expect_eq(f"sha256 of {size} bytes", sha256(got.body), sha256(noise(size)))


@on_both("bodies around the sizes of frames and windows are exact, nginx", "nginx")
def sizes_nginx(lab, secure):
    sizes_from(lab, "nginx", secure)


@on_both("bodies around the sizes of frames and windows are exact, nghttpd", "nghttpd")
def sizes_nghttpd(lab, secure):
    sizes_from(lab, "nghttpd", secure)


@on_both("the same with padding, a push, trailers and no table", "nghttpd-odd")
def sizes_odd(lab, secure):
    sizes_from(lab, "nghttpd-odd", secure)


@on_both("100 MiB come whole, nginx and nghttpd", "nginx", "nghttpd", slow=True)
def download(lab, secure):
    wanted = sha256(noise(BIG))
    for name in ("nginx", "nghttpd"):
        out = lab.server(name).folder / "download"
        lab.client.run("-sS", "-o", out, *lab.server(name).ask(secure, f"/size-{BIG}")).expect_code(0)
        expect_eq(f"sha256 from {name}", sha256(out), wanted)
        out.unlink()


@on_both("100 MiB arrive whole, nginx and Go", "nginx", "go", slow=True)
def upload(lab, secure):
    nginx = lab.server("nginx")
    big = nginx.www / f"size-{BIG}"
    lab.client.one("-T", big, *nginx.ask(secure, f"/upload/big-{secure}"))
    expect_eq("sha256 at nginx", sha256(nginx.www / f"upload/big-{secure}"), sha256(big))
    got = lab.client.one("-T", big, *lab.server("go").ask(secure, "/echo")).json()
    expect_eq("at Go", (got["length"], got["sha256"], got["declared"]), (BIG, sha256(big), BIG))


@on_both("uploads around the sizes of frames and windows arrive whole", "go")
def upload_sizes(lab, secure):
    go = lab.server("go")
    for size in SIZES[1:]:
        path = lab.folder / f"up-{size}"
        path.write_bytes(noise(size))
        got = lab.client.one("-X", "POST", "--data-binary", f"@{path}", *go.ask(secure, "/echo")).json()
        expect_eq(f"{size} bytes", (got["length"], got["sha256"]), (size, sha256(path)))


@on_both("an upload of unknown length arrives whole", "go")
def upload_stream(lab, secure):
    body = noise(300_000)
    got = lab.client.one("-T", "-", *lab.server("go").ask(secure, "/echo"), stdin=body).json()
    expect_eq("body", (got["length"], got["sha256"]), (len(body), hashlib.sha256(body).hexdigest()))


@on_both("an upload through windows of 65 535 bytes comes back whole", "nghttpd-odd")
def upload_small_windows(lab, secure):
    path = lab.folder / "up-odd"
    path.write_bytes(noise(1_000_003))
    got = lab.client.one("-X", "POST", "--data-binary", f"@{path}", *lab.server("nghttpd-odd").ask(secure, "/echo"))
    expect_eq("sha256", sha256(got.body), sha256(path))


@on_both("a body that comes back while it goes out", "go")
def duplex(lab, secure):
    path = lab.folder / "duplex"
    path.write_bytes(noise(1_000_003))
    got = lab.client.one("-X", "POST", "--data-binary", f"@{path}", *lab.server("go").ask(secure, "/duplex"))
    expect_eq("sha256", sha256(got.body), sha256(path))


@on_both("an answer before the upload is read is the answer", "go", "nghttpd-early", "nginx")
def early(lab, secure):
    curl_cannot(lab, "takes the RST_STREAM with NO_ERROR behind such an answer for an error")
    path = lab.folder / "early"
    path.write_bytes(noise(5_000_000))
    args = ["-X", "POST", "--data-binary", f"@{path}"]
    lab.client.one(*args, *lab.server("go").ask(secure, "/early")).expect_status(413)
    lab.client.one(*args, *lab.server("nghttpd-early").ask(secure, "/size-1")).expect_status(200)
    lab.client.one("-T", path, *lab.server("nginx").ask(secure, "/early/file")).expect_status(413)


@on_both("heads: names in lower case, Host as :authority, nothing of the connection (8.2.2, 8.3.1)", "go")
def heads(lab, secure):
    fields = ["-H", "X-Mixed-Case: Value", "-H", "Connection: keep-alive, x-hop", "-H", "Keep-Alive: 5",
              "-H", "Host: other.test", "-b", "a=b; c=d", "-A", "agent"]  # fmt: skip
    got = lab.client.one(*fields, *lab.server("go").ask(secure, "/echo?q=%20x")).expect_status(200).json()
    expect_eq("host", got["host"], "other.test")
    expect_eq("target", got["target"], "/echo?q=%20x")
    expect_eq("mixed case", got["headers"].get("X-Mixed-Case"), ["Value"])
    expect_eq("cookie", "; ".join(got["headers"]["Cookie"]), "a=b; c=d")
    for name in ("Connection", "Keep-Alive"):
        expect(name not in got["headers"], f"{name} was sent")


@on_both("a head of 40 KiB, in several frames", "go")
def many_headers(lab, secure):
    lab.client.one(*lab.server("go").ask(secure, "/headers?n=40&size=1000")).expect_status(200)


@on_both("a request head of 40 KiB, in several frames", "go")
def long_request(lab, secure):
    fields = [part for at in range(40) for part in ("-H", f"x-field-{at}: {'v' * 1000}")]
    got = lab.client.one(*fields, *lab.server("go").ask(secure, "/echo")).json()
    expect_eq("the last one", got["headers"].get("X-Field-39"), ["v" * 1000])


@on_both("trailers and 1xx do not disturb the body", "go", "nghttpd-odd")
def trailers(lab, secure):
    expect_eq("trailers", lab.client.one(*lab.server("go").ask(secure, "/trailers")).text, "body\n")
    expect_eq("hints", lab.client.one(*lab.server("go").ask(secure, "/hints")).text, "after hints\n")
    got = lab.client.one(*lab.server("nghttpd-odd").ask(secure, "/size-1"))
    expect_eq("length", len(got.body), 1)


@on_both("HEAD, 204 and 304 have no body", "nginx", "go")
def bodiless(lab, secure):
    nginx = lab.server("nginx")
    run = lab.client.run("-sS", "-I", *nginx.ask(secure, "/size-65537"), hang=10).expect_code(0)
    expect_in("head", b"content-length: 65537", run.out.lower())
    expect_eq("204", lab.client.one(*nginx.ask(secure, "/no-content")).expect_status(204).body, b"")
    expect_eq("304", lab.client.one(*lab.server("go").ask(secure, "/status?code=304")).expect_status(304).body, b"")


@on_both("a redirect is followed on the same connection", "nginx")
def redirect(lab, secure):
    if not secure:
        curl_cannot(lab, "cannot use a connection of prior knowledge twice")
    got = lab.client.one("-L", *lab.server("nginx").ask(secure, "/moved"))
    expect_eq("body and connections", (got.text, got.connects), ("HTTP/2.0", 1))


@on_both("a stream that is reset in its body is an error, with a length and without (8.1)", "go")
def aborted(lab, secure):
    for path in ("/abort", "/abort?length=1", "/abort?n=0", "/abort?n=200000"):
        lab.client.run("-sS", *lab.server("go").ask(secure, path), hang=20).expect_failure()
