"""What users of Python's other clients expect, and what they are told where it is otherwise."""

import asyncio
import gc
import http.cookiejar
import inspect
import pickle
import subprocess
import warnings

import pytest

import mimus
from conftest import running


@pytest.fixture
def netrc(tmp_path, monkeypatch):
    """Writes the user's netrc file."""
    path = tmp_path / "netrc"
    monkeypatch.setenv("NETRC", str(path))
    path.write_text("machine 127.0.0.1 login ada password secret\n")
    return path


def test_netrc_counts_where_nothing_else_is_said(origin, netrc):
    url = origin.url("/basic-auth/ada/secret")
    with mimus.Client() as client:
        assert client.get(url).status == 200
        assert client.get(url, auth=None).status == 401
        assert client.get(url, auth=("ada", "wrong")).status == 401
        assert client.get(url, auth=lambda request: None).status == 401
        assert client.get(url.replace("://", "://eve:x@")).status == 401
        assert client.get(url, headers={"Authorization": "Basic eDp5"}).status == 401
    for other in ({"trust_env": False}, {"auth": None}, {"auth": ("eve", "x")}):
        with mimus.Client(**other) as client:
            assert client.get(url).status == 401, other

    async def main():
        async with mimus.AsyncClient() as client:
            assert (await client.get(url)).status == 200
            assert (await client.get(url, auth=None)).status == 401

    asyncio.run(main())


def test_a_netrc_that_is_broken_or_missing_is_passed_over(origin, netrc):
    for text in ("machine 127.0.0.1 login", "this is no netrc"):
        netrc.write_text(text)
        with mimus.Client() as client:
            assert client.get(origin.url("/basic-auth/ada/secret")).status == 401
    netrc.unlink()
    with mimus.Client() as client:
        assert client.get(origin.url("/get")).ok


def test_netrc_is_not_a_transports_business(origin, netrc):
    httpx = pytest.importorskip("httpx")
    import mimus.httpx

    with httpx.Client(transport=mimus.httpx.Transport()) as client:
        assert client.get(origin.url("/basic-auth/ada/secret")).status_code == 401


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def test_keys_may_be_encrypted(tmp_path):
    both = tmp_path / "client.pem"
    with running(tmp_path / "ca.pem", "--port", "tls-client-cert", "--client-out", str(both)) as own:
        url = own.url("/get", "tls-client-cert")
        encrypted, old = tmp_path / "pkcs8.pem", tmp_path / "traditional.pem"
        openssl("pkcs8", "-topk8", "-in", both, "-out", encrypted, "-passout", "pass:geheim", "-v2", "aes-256-cbc")
        openssl("ec", "-in", both, "-out", old, "-aes128", "-passout", "pass:geheim")
        with mimus.Client(verify=own.ca) as client:
            for key in (encrypted, old):
                assert client.get(url, cert=(both, key, "geheim")).ok
                for wrong in ((both, key, "falsch"), (both, key)):
                    with pytest.raises(mimus.RequestError, match="key"):
                        client.get(url, cert=wrong)
            assert client.get(url, cert=(both, both, "of no use")).ok
        with mimus.Client(verify=own.ca, cert=(both, encrypted, "geheim")) as client:
            assert client.get(url).ok


def test_extensions_are_obeyed_or_refused_by_name(client, origin):
    with pytest.raises(mimus.ReadTimeout):
        client.get(origin.url("/delay/60"), extensions={"timeout": {"read": 0.1, "connect": 5}})
    assert client.get(origin.url("/get"), extensions={}).ok
    for name, hint in [("sni_hostname", "resolve"), ("trace", "hooks"), ("no such", "no such extension")]:
        with pytest.raises(ValueError, match=name) as caught:
            client.get(origin.url("/get"), extensions={name: "x"})
        assert hint in str(caught.value)
    with pytest.raises(ValueError, match="timeout"):
        client.get(origin.url("/get"), timeout=3, extensions={"timeout": {"read": 3}})
    with pytest.raises(ValueError, match="total"):
        client.get(origin.url("/get"), extensions={"timeout": {"total": 3}})


def warned(work):
    """What is warned of while `work` is done and all that it leaves is collected."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
        gc.collect()
    return [(one.category, str(one.message)) for one in caught]


def test_a_stream_left_open_is_warned_of(client, origin):
    url = origin.url("/bytes/10000000")
    unclosed = [(ResourceWarning, "unclosed <Response [200 OK]>")]
    assert warned(lambda: client.stream("GET", url) and None) == unclosed

    async def leave():
        async with mimus.AsyncClient() as client:
            await client.get(url, stream=True)

    assert warned(lambda: asyncio.run(leave())) == unclosed


def test_what_was_closed_read_or_never_given_is_not(client, origin):
    def closed():
        client.stream("GET", origin.url("/bytes/10000000")).close()

    def read():
        client.stream("GET", origin.url("/bytes/100000")).read()
        # All of it came with the head, and its connection serves again.
        client.stream("GET", origin.url("/bytes/1"))
        client.get(origin.url("/bytes/100000"))

    async def cancelled():
        async with mimus.AsyncClient() as client:
            for _ in range(20):
                call = asyncio.ensure_future(client.get(origin.url("/bytes/10000000"), stream=True))
                while not call.done():
                    await asyncio.sleep(0)
                    call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    call.result()

    def client_dropped():
        mimus.Client().get(origin.url("/get"))

    for work in (closed, read, lambda: asyncio.run(cancelled()), client_dropped):
        assert warned(work) == []


def test_what_is_awaited_is_no_hook_where_nobody_awaits(client, origin):
    async def sign(request):
        request.headers["X"] = "y"

    refused = pytest.raises(TypeError, match="AsyncClient")
    with refused:
        mimus.Client(hooks={"request": [sign]})
    with mimus.Client(hooks={"response": [sign]}) as hooked, refused:
        hooked.get(origin.url("/get"))
    with mimus.Client(hooks={"request": [lambda request: sign(request)]}) as hooked, refused:
        hooked.get(origin.url("/get"))
    with refused:
        client.get(origin.url("/get"), auth=sign)

    async def main():
        async with mimus.AsyncClient(auth=sign) as client:
            with refused:
                await client.get(origin.url("/get"))

    assert warned(lambda: asyncio.run(main())) == []


def test_names_of_requests_and_httpx_are_answered_with_ours(client, origin):
    for theirs, ours in [("allow_redirects", "follow_redirects"), ("proxies", "proxy"), ("http2", "http_version")]:
        with pytest.raises(TypeError, match=f"'{theirs}'.*{ours}"):
            client.get(origin.url("/get"), **{theirs: None})
    with pytest.raises(TypeError, match="follow_redirects"):
        mimus.Client(max_redirects=3)
    with pytest.raises(TypeError, match="event_hooks.*hooks"):
        mimus.AsyncClient(event_hooks={})
    with pytest.raises(TypeError, match=r"mimus\.Timeout\(connect"):
        client.get(origin.url("/get"), timeout=(3, 30))


def test_what_things_say_of_themselves(client, origin):
    assert repr(client) == "<mimus.Client>"
    other = mimus.Client()
    other.close()
    assert repr(other) == "<mimus.Client [closed]>"
    assert repr(mimus.AsyncClient()) == "<mimus.AsyncClient>"
    assert repr(client.get(origin.url("/status/404"))) == "<Response [404 Not Found]>"
    names = {name: getattr(mimus, name) for name in ("Limits", "Retry", "Timeout")}
    for made in (mimus.Limits(), mimus.Limits(max_connections=3, max_idle_per_host=0, idle_timeout=None)):
        assert eval(repr(made), names) == made
    policy = mimus.Retry(2, statuses=[503], methods=["GET"], on_timeout=True)
    assert repr(eval(repr(policy), names)) == repr(policy)
    assert "Rust" not in repr(policy) and repr(policy).startswith("Retry(2, statuses=[503], methods=[")
    assert eval(repr(mimus.Timeout(3)), names) == mimus.Timeout(3)


def test_a_closed_client_is_not_entered_again(origin):
    client = mimus.Client()
    client.close()
    client.close()
    with pytest.raises(RuntimeError, match="closed"), client:
        pass

    async def main():
        client = mimus.AsyncClient()
        await client.aclose()
        await client.aclose()
        with pytest.raises(RuntimeError, match="closed"):
            async with client:
                pass
        with pytest.raises(RuntimeError, match="closed"):
            await client.get(origin.url("/get"))

    asyncio.run(main())


def test_a_stream_outlives_its_client(origin):
    with mimus.Client() as client:
        response = client.stream("GET", origin.url("/bytes/1000000"))
    assert len(response.read()) == 1000000


def test_errors_travel_between_processes(client, origin):
    with pytest.raises(mimus.StatusError) as caught:
        client.get(origin.url("/status/404")).raise_for_status()
    error = pickle.loads(pickle.dumps(caught.value))
    assert (type(error), error.args, error.status, error.url) == (
        mimus.StatusError, caught.value.args, 404, caught.value.url
    )  # fmt: skip
    assert error.response is None and caught.value.response is not None
    with pytest.raises(mimus.ConnectError) as caught:
        client.get(origin.url("/", "refused"))
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.kind, error.phase, error.is_retryable) == ("connect", "connect", True)


def test_cookies_come_and_go(origin):
    jar = http.cookiejar.CookieJar()
    with mimus.Client() as client:
        client.get(origin.url("/cookies/set?a=1&b=2"))
        assert client.cookies.dump(jar) is jar
    assert {cookie.name: cookie.value for cookie in jar} == {"a": "1", "b": "2"}
    for options in ({"cookies": jar}, {}):
        with mimus.Client(**options) as client:
            client.cookies.load(jar)
            assert client.get(origin.url("/cookies")).json()["cookies"] == {"a": "1", "b": "2"}


def test_transports_tell_their_arguments():
    pytest.importorskip("httpx")
    import mimus.httpx

    said = inspect.getdoc(mimus.httpx.Transport)
    for name in inspect.signature(mimus.httpx.Transport).parameters:
        assert f"{name}: " in said
    assert inspect.getdoc(mimus.httpx.AsyncTransport)
