"""What the client decides: redirects, cookies, credentials, retries, failing."""

from urllib.parse import quote

from harness.checks import Book, expect, expect_eq, expect_in

book = Book()
check = book.check


@check("a redirect is not followed unasked", "httpbin")
def not_followed(lab):
    lab.client.one(lab.server("httpbin").url("/redirect/1")).expect_status(302)


@check("redirects are followed, relative and absolute", "httpbin")
def followed(lab):
    for kind in ("relative-redirect", "absolute-redirect"):
        got = lab.client.one("-L", lab.server("httpbin").url(f"/{kind}/5")).expect_status(200).json()
        expect(got["url"].endswith("/get"), f"ended at {got['url']}")


def redirected(lab, code: int) -> dict:
    httpbin = lab.server("httpbin")
    url = httpbin.url(f"/redirect-to?url={quote(httpbin.url('/anything'), safe='')}&status_code={code}")
    return lab.client.one("-L", "-d", "a=1", url).expect_status(200).json()


@check("301, 302 and 303 turn POST into GET without a body (RFC 9110 15.4)", "httpbin")
def becomes_get(lab):
    for code in (301, 302, 303):
        got = redirected(lab, code)
        expect_eq(f"method after {code}", got["method"], "GET")
        expect(not got["form"] and not got["data"], f"a body was sent after {code}")
        expect("Content-Length" not in got["headers"], f"Content-Length was sent after {code}")


@check("307 and 308 keep the method and send the body again", "httpbin")
def keeps_method(lab):
    for code in (307, 308):
        got = redirected(lab, code)
        expect_eq(f"method after {code}", got["method"], "POST")
        expect_eq(f"form after {code}", got["form"], {"a": ["1"]})


@check("a redirect loop ends (exit 47)", "nginx")
def loop(lab):
    lab.client.run("-sS", "-L", lab.server("nginx").url("/loop"), hang=20).expect_code(47)


@check("-u is kept to its own origin across a redirect", "httpbin")
def credentials_stay(lab):
    httpbin = lab.server("httpbin")
    for target, kept in ((httpbin.url("/headers"), True), (httpbin.url("/headers", host="localhost"), False)):
        url = httpbin.url(f"/redirect-to?url={quote(target, safe='')}")
        got = lab.client.one("-L", "-u", "user:pass", url).expect_status(200).json()["headers"]
        expect_eq(f"Authorization sent to {got['Host'][0]}", "Authorization" in got, kept)


@check("a header Authorization of one's own is kept to its origin too", "httpbin")
def header_stays(lab):
    httpbin = lab.server("httpbin")
    target = quote(httpbin.url("/headers", host="localhost"), safe="")
    url = httpbin.url(f"/redirect-to?url={target}")
    got = lab.client.one("-L", "-H", "Authorization: Bearer t", "-H", "Cookie: a=b", url).json()["headers"]
    expect("Authorization" not in got, "Authorization went to another origin")
    expect("Cookie" not in got, "Cookie went to another origin")


@check("cookies set by a redirect are sent to where it leads", "httpbin")
def cookies(lab):
    jar = lab.scratch() / "jar"
    got = lab.client.one("-L", "-c", jar, "-b", jar, lab.server("httpbin").url("/cookies/set?a=1&b=two"))
    expect_eq("cookies", got.json()["cookies"], {"a": "1", "b": "two"})


@check("a cookie jar outlives the process", "httpbin")
def cookie_jar(lab):
    httpbin = lab.server("httpbin")
    jar = lab.scratch() / "jar"
    lab.client.one("-c", jar, httpbin.url("/cookies/set?kept=1"))
    expect_in("jar", "kept", jar.read_text())
    got = lab.client.one("-b", jar, httpbin.url("/cookies")).json()
    expect_eq("cookies", got["cookies"], {"kept": "1"})


@check("a cookie is not sent to another host", "httpbin")
def cookie_host(lab):
    httpbin = lab.server("httpbin")
    jar = lab.scratch() / "jar"
    lab.client.one("-c", jar, httpbin.url("/cookies/set?a=1"))
    got = lab.client.one("-b", jar, httpbin.url("/cookies", host="localhost")).json()
    expect_eq("cookies", got["cookies"], {})


@check("an expired cookie is forgotten", "httpbin")
def cookie_expiry(lab):
    httpbin = lab.server("httpbin")
    jar = lab.scratch() / "jar"
    lab.client.one("-c", jar, httpbin.url("/cookies/set?a=1&b=2"))
    lab.client.one("-b", jar, "-c", jar, httpbin.url("/cookies/delete?a="))
    got = lab.client.one("-b", jar, httpbin.url("/cookies")).json()
    expect_eq("cookies", got["cookies"], {"b": "2"})


@check("Basic authentication, right and wrong", "httpbin")
def basic(lab):
    url = lab.server("httpbin").url("/basic-auth/user/p%3Aw")
    expect_eq("user", lab.client.one("-u", "user:p:w", url).expect_status(200).json()["user"], "user")
    lab.client.one("-u", "user:wrong", url).expect_status(401)


@check("Digest authentication with MD5 and SHA-256 (RFC 7616)", "httpbin")
def digest(lab):
    for algorithm in ("MD5", "SHA-256"):
        url = lab.server("httpbin").url(f"/digest-auth/auth/user/pass/{algorithm}")
        lab.client.one("--digest", "-u", "user:pass", url).expect_status(200)
        lab.client.one("--digest", "-u", "user:wrong", url).expect_status(401)


@check("-f turns an error status into exit 22", "httpbin")
def fail(lab):
    lab.client.run("-sS", "-f", lab.server("httpbin").url("/status/404")).expect_code(22)
    lab.client.run("-sS", "-f", lab.server("httpbin").url("/status/200")).expect_code(0)


@check("--retry asks again after 503, and no more than told", "nginx", slow=True)
def retry(lab):
    nginx = lab.server("nginx")
    before = nginx.requests("/busy")
    run, _ = lab.client.tell("--retry", "2", nginx.url("/busy"))
    run.expect_code(0)
    expect_eq("requests", nginx.requests("/busy") - before, 3)
