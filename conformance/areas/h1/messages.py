"""What is asked and what is answered: methods, targets, headers, status codes."""

from harness.checks import Book, expect, expect_eq, expect_in

from areas.h1.servers import TEXT

book = Book()
check = book.check


@check("status codes come back as sent", "httpbin")
def statuses(lab):
    for code in (200, 201, 204, 301, 304, 400, 404, 418, 500, 503):
        lab.client.one(lab.server("httpbin").url(f"/status/{code}")).expect_status(code)


@check("each method arrives as itself", "httpbin")
def methods(lab):
    url = lab.server("httpbin").url("/anything")
    for name in ("GET", "POST", "PUT", "DELETE"):
        got = lab.client.one(*lab.client.method(name), url).expect_status(200).json()
        expect_eq("method", got["method"], name)


@check("a method that nobody knows arrives as given", "httpbin")
def own_method(lab):
    got = lab.client.one("-X", "BREW", lab.server("httpbin").url("/anything")).expect_status(200).json()
    expect_eq("method", got["method"], "BREW")


@check("OPTIONS is answered", "httpbin")
def options(lab):
    lab.client.one(*lab.client.method("OPTIONS"), lab.server("httpbin").url("/get")).expect_status(200)


@check("HEAD ends at the head, whatever length it names (RFC 9110 9.3.2)", "nginx")
def head(lab):
    run = lab.client.run("-sS", "-I", lab.server("nginx").url("/size-65537"), hang=10).expect_code(0)
    expect_in("head", b"content-length: 65537", run.out.lower())
    expect(len(run.out) < 2000, f"{len(run.out)} bytes where only a head is")


@check("204 has no body and leaves the connection usable", "nginx")
def no_content(lab):
    nginx = lab.server("nginx")
    first, second = lab.client.many(nginx.url("/no-content"), nginx.url("/connection"), count=2)
    first.expect_status(204)
    expect_eq("body", first.body, b"")
    expect_eq("connections opened for the second", second.connects, 0)


@check("304 has no body although it names a length", "nginx")
def not_modified(lab):
    nginx = lab.server("nginx")
    head = lab.client.run("-sS", "-I", nginx.url("/size-4096")).out.decode()
    etag = next(line.split(": ", 1)[1] for line in head.splitlines() if line.lower().startswith("etag:"))
    got = lab.client.one("-H", f"If-None-Match: {etag}", nginx.url("/size-4096"), hang=10)
    expect_eq("body", got.expect_status(304).body, b"")


@check("headers arrive as given, repeated ones in order", "httpbin")
def headers(lab):
    got = lab.client.one(
        "-H", "X-One: 1", "-H", "X-Many: a", "-H", "X-Many: b", "-H", "X-Latin:  spaced  out ",
        lab.server("httpbin").url("/headers"),
    ).json()["headers"]  # fmt: skip
    expect_eq("X-One", got.get("X-One"), ["1"])
    expect_eq("X-Many", got.get("X-Many"), ["a", "b"])
    expect_eq("X-Latin", got.get("X-Latin"), ["spaced  out"])


@check("Host names the authority with its port, once (RFC 9112 3.2)", "httpbin")
def host(lab):
    httpbin = lab.server("httpbin")
    got = lab.client.one(httpbin.url("/headers")).json()["headers"]
    expect_eq("Host", got.get("Host"), [f"127.0.0.1:{httpbin.port}"])


@check("a Host header of one's own replaces it", "httpbin")
def own_host(lab):
    got = lab.client.one("-H", "Host: other.test", lab.server("httpbin").url("/headers")).json()["headers"]
    expect_eq("Host", got.get("Host"), ["other.test"])


@check("credentials in the URL are sent as Basic, not in Host", "httpbin")
def userinfo(lab):
    httpbin = lab.server("httpbin")
    url = f"http://user:pass@127.0.0.1:{httpbin.port}/basic-auth/user/pass"
    expect_eq("authenticated", lab.client.one(url).expect_status(200).json()["authenticated"], True)


@check("path and query keep their percent-encoding", "httpbin")
def encoding(lab):
    url = lab.server("httpbin").url("/anything/a%2Fb/c%20d?x=%26%3D&y=1%2B1&z")
    got = lab.client.one(url).json()
    expect_eq("url", got["url"], url)
    expect_eq("x", got["args"]["x"], ["&="])


@check("a fragment is not sent", "httpbin")
def fragment(lab):
    got = lab.client.one(lab.server("httpbin").url("/anything?a=1#secret")).json()
    expect("secret" not in got["url"], f"sent: {got['url']}")


@check("-i shows the head before the body", "nginx")
def include(lab):
    run = lab.client.run("-sS", "-i", lab.server("nginx").url("/text/fox.txt")).expect_code(0)
    head, _, body = run.out.replace(b"\r\n", b"\n").partition(b"\n\n")
    expect(head.startswith(b"HTTP/1.1 200"), f"begins with {head[:20]!r}")
    expect_eq("body", body, TEXT)


@check("-d sends a form by POST", "httpbin")
def form(lab):
    got = lab.client.one("-d", "a=1&b=two+words", lab.server("httpbin").url("/anything")).json()
    expect_eq("method", got["method"], "POST")
    expect_eq("form", got["form"], {"a": ["1"], "b": ["two words"]})


@check("--json sends JSON and says so", "httpbin")
def json_body(lab):
    got = lab.client.one("--json", '{"a": [1, "ü"]}', lab.server("httpbin").url("/anything")).json()
    expect_eq("json", got["json"], {"a": [1, "ü"]})
    expect_in("Content-Type", "application/json", got["headers"]["Content-Type"][0])


@check("text in UTF-8 comes through unharmed", "httpbin")
def utf8(lab):
    expect_in("body", "∮ E⋅da = Q", lab.client.one(lab.server("httpbin").url("/encoding/utf8")).text)
