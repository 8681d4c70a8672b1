"""Redirects, credentials, cookies, hooks, retries."""

import http.cookiejar

import pytest

import mimus


def test_redirects(client, origin):
    response = client.get(origin.url("/redirect/3"))
    assert response.status == 200 and response.url == origin.url("/get")
    assert [hop.status for hop in response.history] == [302, 302, 302]
    assert response.history[0].url == origin.url("/redirect/3")
    assert response.history[0].headers["location"]
    unfollowed = client.get(origin.url("/redirect/3"), follow_redirects=False)
    assert unfollowed.status == 302 and unfollowed.is_redirect and unfollowed.history == []
    with pytest.raises(mimus.TooManyRedirects) as caught:
        client.get(origin.url("/redirect/3"), follow_redirects=2)
    assert caught.value.kind == "redirect"
    with mimus.Client(follow_redirects=False) as plain:
        assert plain.get(origin.url("/redirect/1")).status == 302
        assert plain.get(origin.url("/redirect/1"), follow_redirects=True).status == 200


def test_a_body_that_is_gone_is_not_sent_again(client, origin):
    url = origin.url("/redirect-to?status_code=307&url=/post")
    assert client.post(url, content=b"twice").json()["data"] == "twice"
    with pytest.raises(mimus.RedirectError):
        client.post(url, content=iter([b"once"]))


def test_credentials(client, origin):
    basic = origin.url("/basic-auth/user/p%C3%A4ss")
    assert client.get(basic).status == 401
    assert client.get(basic, auth=("user", "p\u00e4ss")).status == 200
    assert client.get(basic, auth=mimus.Basic("user", "p\u00e4ss")).status == 200
    digest = origin.url("/digest-auth/auth/user/pass/SHA-256")
    assert client.get(digest, auth=mimus.Digest("user", "pass")).status == 200
    assert client.get(origin.url("/bearer"), auth=mimus.Bearer("token")).status == 200
    assert "pass" not in repr(mimus.Digest("user", "pass"))
    with mimus.Client(auth=("user", "p\u00e4ss")) as known:
        assert known.get(basic).status == 200
        assert known.get(basic, auth=None).status == 401
    with pytest.raises(TypeError):
        client.get(basic, auth="user")


def test_userinfo_in_a_url(client, origin):
    url = origin.url("/basic-auth/user/pass").replace("://", "://user:pass@")
    response = client.get(url)
    assert response.status == 200
    assert "pass@" not in response.url
    with pytest.raises(mimus.ConnectError) as caught:
        client.get("http://user:hunter2@127.0.0.1:1/")
    assert "hunter2" not in f"{caught.value} {caught.value.url}"


def test_a_callable_that_authenticates(client, origin, origin6):
    def sign(request):
        request.headers["Authorization"] = f"Bearer {request.method} {len(request.url)}"

    assert client.get(origin.url("/get"), auth=sign).json()["headers"][-1][0] == "Authorization"
    # What is for one origin is not for another.
    elsewhere = client.get(origin.url("/redirect-to"), params={"url": origin6.url("/get")}, auth=sign)
    assert elsewhere.url == origin6.url("/get")
    assert "Authorization" not in dict(elsewhere.json()["headers"])
    with mimus.Client(auth=sign) as signing:
        assert "Authorization" in dict(signing.get(origin.url("/get")).json()["headers"])
        assert "Authorization" not in dict(signing.get(origin.url("/get"), auth=None).json()["headers"])


def test_hooks(origin):
    seen = []

    def before(request):
        seen.append((request.attempt, request.method))
        request.headers["X-Hook"] = "1"
        del request.headers["User-Agent"]

    hooks = {"request": before, "response": [lambda response: seen.append(response.status)]}
    with mimus.Client(hooks=hooks) as client:
        headers = dict(client.get(origin.url("/redirect/1")).json()["headers"])
    assert headers["X-Hook"] == "1" and "User-Agent" not in headers
    assert seen == [(0, "GET"), (1, "GET"), 200]


def test_a_hook_can_refuse(origin):
    class Refused(Exception):
        pass

    def refuse(_):
        raise Refused

    with mimus.Client(hooks={"request": [refuse]}) as client, pytest.raises(Refused):
        client.get(origin.url("/get"))
    with mimus.Client(hooks={"response": refuse}) as client, pytest.raises(Refused):
        client.get(origin.url("/get"))
    with pytest.raises(ValueError):
        mimus.Client(hooks={"other": refuse})
    with pytest.raises(TypeError):
        mimus.Client(hooks={"request": 1})


def test_cookies_are_kept(client, origin):
    client.get(origin.url("/cookies/set?a=1&b=2"))
    assert client.cookies.header(origin.url("/")) == "a=1; b=2"
    assert len(client.cookies) == 2
    client.cookies.set(origin.url("/"), "c=3; Path=/")
    assert "c=3" in client.cookies.header(origin.url("/"))
    with pytest.raises(ValueError):
        client.cookies.set(origin.url("/"), "d=4; Domain=example.com")
    client.cookies.clear()
    assert client.cookies.header(origin.url("/")) is None
    with mimus.Client(cookies=False) as forgetful:
        forgetful.get(origin.url("/cookies/set?a=1"))
        assert forgetful.cookies is None


def test_cookies_to_and_from_cookiejar(origin):
    with mimus.Client() as client:
        client.get(origin.url("/cookies/set?a=1"))
        client.cookies.set("https://www.example.com/", "s=2; Domain=example.com; Path=/p; Secure; HttpOnly; Max-Age=1000")
        jar = client.cookies.dump()
    assert isinstance(jar, http.cookiejar.CookieJar)
    cookies = {cookie.name: cookie for cookie in jar}
    assert (cookies["a"].domain, cookies["a"].value, cookies["a"].discard) == ("127.0.0.1", "1", True)
    shared = cookies["s"]
    assert (shared.domain, shared.path, shared.secure) == (".example.com", "/p", True)
    assert shared.has_nonstandard_attr("HttpOnly") and shared.expires
    with mimus.Client(cookies=jar) as client:
        assert client.cookies.header("https://sub.example.com/p") == "s=2"
        assert client.get(origin.url("/cookies")).json()["cookies"] == {"a": "1"}
        assert client.cookies.dump(http.cookiejar.LWPCookieJar())._cookies.keys() == jar._cookies.keys()


def test_the_jar_of_requests_own_shape():
    jar = http.cookiejar.CookieJar()
    cookie = http.cookiejar.Cookie(
        0, "n", "v", None, False, "localhost.local", False, False, "/", True, False, None, True, None, None, {}
    )
    jar.set_cookie(cookie)
    with mimus.Client(cookies=jar) as client:
        assert client.cookies.header("http://localhost/") == "n=v"
        assert [cookie.domain for cookie in client.cookies.dump()] == ["localhost.local"]


def test_retries(origin):
    seen = []
    hooks = {"request": lambda request: seen.append(request.attempt)}
    retry = mimus.Retry(2, statuses=[418], backoff=0, max_delay=0)
    with mimus.Client(hooks=hooks, retries=retry) as client:
        assert client.get(origin.url("/status/418")).status == 418
        assert seen == [0, 1, 2]
        seen.clear()
        assert client.get(origin.url("/status/418"), retries=None).status == 418
        assert seen == [0]
    with pytest.raises(ValueError):
        mimus.Retry(statuses=[9])
    with pytest.raises(TypeError):
        mimus.Client(retries="often")
