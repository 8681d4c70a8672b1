"""Bodies both ways: coding, framing, size, ranges, forms."""

from harness.checks import Book, expect, expect_eq, expect_in, sha256

from areas.h1.servers import BIG, SIZES, TEXT, noise

book = Book()
check = book.check


@check("gzip and deflate are decoded", "httpbin")
def decoded(lab):
    for coding, key in (("gzip", "gzipped"), ("deflate", "deflated")):
        got = lab.client.one("--compressed", lab.server("httpbin").url(f"/{coding}")).json()
        expect_eq(key, got[key], True)


@check("gzip made on the fly, chunked, equals the file", "nginx")
def gzip_on_the_fly(lab):
    url = lab.server("nginx").url("/text/fox.txt")
    run = lab.client.run("-sS", "-I", "--compressed", url).expect_code(0)
    expect_in("head", b"content-encoding: gzip", run.out.lower())
    expect_eq("body", lab.client.one("--compressed", url).body, TEXT)


@check("brotli and zstd are decoded", "nginx")
def newer_codings(lab):
    for coding in ("br", "zstd"):
        got = lab.client.one("--compressed", lab.server("nginx").url(f"/{coding}/hello.txt"))
        expect_eq(coding, got.body, b"hello")


@check("a coding nobody asked for is left alone", "nginx")
def left_alone(lab):
    got = lab.client.one(lab.server("nginx").url("/gzip/fox.txt"))
    expect(got.body.startswith(b"\x1f\x8b"), f"begins with {got.body[:4]!r}")


@check("bodies of every size around a buffer's are exact", "nginx")
def sizes(lab):
    nginx = lab.server("nginx")
    urls = [nginx.url(f"/size-{size}") for size in SIZES]
    for size, got in zip(SIZES, lab.client.many(*urls, count=len(urls)), strict=True):
        expect_eq(f"sha256 of {size} bytes", sha256(got.body), sha256(noise(size, size)))


@check("an empty body is empty", "nginx")
def empty(lab):
    expect_eq("body", lab.client.one(lab.server("nginx").url("/empty")).expect_status(200).body, b"")


@check("a body in many chunks is whole", "httpbin")
def chunks(lab):
    httpbin = lab.server("httpbin")
    first, second = (
        lab.client.one(httpbin.url(f"/stream-bytes/100000?seed=7&chunk_size={size}")).body for size in (1000, 37)
    )
    expect_eq("length", len(first), 100_000)
    expect_eq("the same bytes in other chunks", sha256(second), sha256(first))
    lines = lab.client.one(httpbin.url("/stream/100")).text.splitlines()
    expect_eq("lines", len(lines), 100)


@check("trailers end a body and leave the connection usable", "httpbin")
def trailers(lab):
    httpbin = lab.server("httpbin")
    first, second = lab.client.many(httpbin.url("/trailers?x-sum=1"), httpbin.url("/get"), count=2)
    expect_eq("args", first.json()["args"], {"x-sum": ["1"]})
    expect_eq("connections opened for the second", second.connects, 0)


@check("100 MiB over TCP, same sha256", "nginx", slow=True)
def big_plain(lab):
    download_big(lab, "plain")


@check("100 MiB over TLS, same sha256", "nginx", slow=True)
def big_tls(lab):
    download_big(lab, "tls")


def download_big(lab, kind: str) -> None:
    nginx = lab.server("nginx")
    file = lab.scratch() / "big"
    lab.client.one("--cacert", lab.pki.ca.cert, "-o", file, nginx.url("/big", kind))
    expect_eq("bytes", file.stat().st_size, BIG)
    expect_eq("sha256", sha256(file), sha256(nginx.www / "big"))
    file.unlink()


@check("100 MiB uploaded by PUT, same sha256", "nginx", slow=True)
def big_upload(lab):
    nginx = lab.server("nginx")
    lab.client.one("-T", nginx.www / "big", nginx.url("/upload/big")).expect_status(201)
    expect_eq("sha256", sha256(nginx.uploads / "big"), sha256(nginx.www / "big"))
    (nginx.uploads / "big").unlink()


@check("an upload of unknown length is chunked (RFC 9112 7.1)", "httpbin")
def chunked_upload(lab):
    data = noise(50_000, 3).hex().encode()
    # go-httpbin gives bytes of an unknown type back as a data URI, and text as it is.
    upload = ("-H", "Content-Type: text/plain", "-T", "-")
    got = lab.client.one(*upload, lab.server("httpbin").url("/anything"), stdin=data).expect_status(200).json()
    expect_eq("method", got["method"], "PUT")
    expect_eq("sha256", sha256(got["data"].encode()), sha256(data))
    dump = lab.client.one(*upload, lab.server("httpbin").url("/dump/request"), stdin=b"hello").text
    expect_in("request", "Transfer-Encoding: chunked", dump)
    expect("Content-Length" not in dump, "Content-Length beside Transfer-Encoding")


@check("--data-binary sends a file as it is", "httpbin")
def binary(lab):
    file = lab.scratch() / "body"
    file.write_bytes(b"one\r\ntwo\n\nthree")
    got = lab.client.one(
        "-H", "Content-Type: text/plain", "--data-binary", f"@{file}", lab.server("httpbin").url("/post")
    )
    expect_eq("data", got.json()["data"], "one\r\ntwo\n\nthree")


@check("multipart carries fields and files (RFC 7578)", "httpbin")
def multipart(lab):
    file = lab.scratch() / "note.txt"
    file.write_text("line one\nline --two\n")
    got = lab.client.one(
        "-F", "field=some value", "-F", f"file=@{file};type=text/plain", lab.server("httpbin").url("/post")
    ).json()
    expect_eq("form", got["form"], {"field": ["some value"]})
    expect_eq("files", got["files"], {"file": ["line one\nline --two\n"]})
    expect_in("Content-Type", "multipart/form-data; boundary=", got["headers"]["Content-Type"][0])


@check("a large multipart file is whole", "httpbin", slow=True)
def multipart_large(lab):
    file = lab.scratch() / "large"
    file.write_bytes(noise(20_000_000, 4))
    got = lab.client.one("-F", f"file=@{file}", lab.server("httpbin").url("/upload")).expect_status(200).json()
    expect(20_000_000 < got["bytes_received"] < 20_002_000, f"{got['bytes_received']} bytes received")


@check("Expect: 100-continue is waited for, and the body follows (RFC 9110 10.1.1)", "httpbin")
def expect_continue(lab):
    got = lab.client.one("-H", "Expect: 100-continue", "-d", "a=1", lab.server("httpbin").url("/post"))
    expect_eq("form", got.expect_status(200).json()["form"], {"a": ["1"]})


@check("a refused expectation keeps the final answer", "nginx")
def expect_refused(lab):
    file = lab.scratch() / "body"
    file.write_bytes(noise(200_000, 5))
    url = lab.server("nginx").url("/early/x")
    lab.client.one("-H", "Expect: 100-continue", "-T", file, url, hang=20).expect_status(413)


@check("a 413 sent before the upload ends is delivered", "nginx")
def early_answer(lab):
    file = lab.scratch() / "body"
    file.write_bytes(noise(20_000_000, 6))
    url = lab.server("nginx").url("/early/x")
    # An empty Expect tells curl not to wait, so that the answer meets a body on its way.
    no_wait = ["-H", "Expect:"] if lab.client.is_curl else []
    lab.client.one(*no_wait, "-T", file, url, hang=30).expect_status(413)


@check("a range gives its part and 206", "nginx")
def byte_range(lab):
    got = lab.client.one("-H", "Range: bytes=1000-1999", lab.server("nginx").url("/size-65537"))
    expect_eq("body", sha256(got.expect_status(206).body), sha256(noise(65537, 65537)[1000:2000]))


@check("-C - resumes a file where it broke off", "nginx")
def resume(lab):
    nginx = lab.server("nginx")
    whole = noise(1_000_003, 1_000_003)
    file = lab.scratch() / "part"
    file.write_bytes(whole[:400_001])
    lab.client.one("-C", "-", "-o", file, nginx.url("/size-1000003")).expect_status(206)
    expect_eq("sha256", sha256(file), sha256(whole))


@check("-O names the file after the URL", "nginx")
def remote_name(lab):
    folder = lab.scratch()
    lab.client.one("-O", lab.server("nginx").url("/text/fox.txt"), cwd=folder)
    expect_eq("file", (folder / "fox.txt").read_bytes(), TEXT)
