"""Which connections there are, and where they go."""

import concurrent.futures
import os
import threading

import pytest

import mimus
from conftest import running


def connection(response):
    return response.json()["connection"]


def test_one_connection_serves_calls_in_a_row(client, origin):
    seen = {connection(client.get(origin.url("/get"))) for _ in range(5)}
    assert len(seen) == 1
    secure = {connection(client.get(origin.url("/get", "https"))) for _ in range(5)}
    assert len(secure) == 1


def test_one_connection_serves_threads_over_http2(client, origin):
    url = origin.url("/get", "tls-h2")
    first = client.get(url)
    assert first.http_version == "HTTP/2"
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        seen = set(threads.map(lambda _: connection(client.get(url)), range(64)))
    assert seen == {connection(first)}


def test_http_versions(client, origin):
    assert client.get(origin.url("/get", "h2c"), http_version="h2c").http_version == "HTTP/2"
    both = origin.url("/get", "tls-h2-http1")
    assert client.get(both).http_version == "HTTP/2"
    assert client.get(both, http_version="1.1").http_version == "HTTP/1.1"
    with mimus.Client(http_version="1.1", verify=str(origin.ca)) as old:
        assert old.get(both).http_version == "HTTP/1.1"
    with pytest.raises(ValueError):
        client.get(both, http_version="4")


def test_threads_share_a_client(client, origin):
    at_once = threading.Barrier(8)

    def many(n):
        at_once.wait(60)
        for turn in range(25):
            body = f"{n}-{turn}" * 50
            assert client.post(origin.url("/post"), content=body).json()["data"] == body
        return True

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert all(threads.map(many, range(8)))


def test_a_stream_that_threads_fight_for_is_read_once(client, origin):
    with client.get(origin.url("/bytes/2000000"), stream=True) as response:
        def read(_):
            got = 0
            try:
                for piece in response.iter_bytes():
                    got += len(piece)
            except mimus.StreamConsumed:
                pass
            return got

        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            assert sum(threads.map(read, range(4))) <= 2000000
    assert client.get(origin.url("/get")).ok


def test_ipv6(client, origin6):
    assert "[::1]" in origin6.http
    response = client.get(origin6.url("/get"))
    assert response.ok and response.remote_addr[0] == "::1"
    with_user = origin6.url("/basic-auth/u/p").replace("://", "://u:p@")
    assert client.get(with_user).status == 200


def test_unix_sockets(client, origin):
    response = client.get("http://any.host/get", unix_socket=origin.unix)
    assert response.ok and response.remote_addr is None
    with mimus.Client(unix_socket=origin.unix) as local:
        assert local.get("http://any.host/get").json()["url"] == "http://any.host/get"


def test_fixed_addresses(client, origin):
    port = int(origin.http.rpartition(":")[2])
    known = {"no-such-host.invalid": "127.0.0.1"}
    assert client.get(f"http://no-such-host.invalid:{port}/get", resolve=known).ok
    known = {f"no-such-host.invalid:{port}": ["127.0.0.1"]}
    with mimus.Client(resolve=known) as fixed:
        assert fixed.get(f"http://no-such-host.invalid:{port}/get").ok
    with pytest.raises(ValueError):
        mimus.Client(resolve={"host": "not an address"})


def test_a_local_address(client, origin):
    response = client.get(origin.url("/ip"), local_address="127.0.0.9")
    assert response.local_addr[0] == "127.0.0.9"
    assert response.json()["origin"] == "127.0.0.9"


def test_a_proxy_is_really_used(client, origin):
    proxy = origin.url("", "proxy")
    direct = client.get(origin.url("/get"))
    through = client.get(origin.url("/get"), proxy=proxy)
    assert through.remote_addr[1] == int(proxy.rpartition(":")[2]) != direct.remote_addr[1]
    tunnelled = client.get(origin.url("/get", "https"), proxy={"https": proxy})
    assert tunnelled.ok and tunnelled.remote_addr == through.remote_addr
    with mimus.Client(proxy={"all": proxy, "no_proxy": "127.0.0.1"}) as choosy:
        assert choosy.get(origin.url("/get")).remote_addr == direct.remote_addr
    with pytest.raises(mimus.ProxyError):
        client.get(origin.url("/get", "https"), proxy=origin.url("", "proxy-auth"))
    known = origin.url("", "proxy-auth").replace("://", "://user:secret@")
    assert client.get(origin.url("/get", "https"), proxy=known).ok
    socks = origin.url("", "socks").replace("http:", "socks5:")
    assert client.get(origin.url("/get"), proxy=socks).ok
    with pytest.raises(ValueError):
        client.get(origin.url("/get"), proxy="gopher://host")


def test_the_environments_proxy(origin, monkeypatch):
    proxy = origin.url("", "proxy")
    monkeypatch.setenv("http_proxy", proxy)
    port = int(proxy.rpartition(":")[2])
    with mimus.Client() as client:
        assert client.get(origin.url("/get")).remote_addr[1] == port
        assert client.get(origin.url("/get"), proxy=False).remote_addr[1] != port
    with mimus.Client(trust_env=False) as client:
        assert client.get(origin.url("/get")).remote_addr[1] != port


def test_trust_is_chosen_by_value(origin):
    url = origin.url("/get", "https")
    for verify in (str(origin.ca), origin.ca, origin.ca.read_bytes(), False):
        with mimus.Client(verify=verify) as client:
            assert client.get(url).ok
    with mimus.Client() as client:
        with pytest.raises(mimus.CertificateError):
            client.get(url)
        first = client.get(url, verify=origin.ca)
        assert client.get(url, verify=origin.ca).reused and not first.reused
    with pytest.raises(FileNotFoundError):
        mimus.Client(verify="/no/such/file.pem")
    with pytest.raises(mimus.RequestError):
        mimus.Client(verify=b"no certificate")


def test_profiles(origin):
    with mimus.Client(profile="chrome", verify=str(origin.ca)) as client:
        headers = dict(client.get(origin.url("/get"), kind="navigate").json()["headers"])
        assert "Chrome/" in headers["User-Agent"]
        with pytest.raises(ValueError):
            client.get(origin.url("/get"), kind="no such kind")
    with pytest.raises(mimus.RequestError):
        mimus.Client(profile="no such browser")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_has_connections_of_its_own(client, origin):
    before = connection(client.get(origin.url("/get")))
    secure = connection(client.get(origin.url("/get", "tls-h2")))
    read, write = os.pipe()
    with client.get(origin.url("/bytes/2000000"), stream=True) as streamed:
        child = os.fork()
        if child == 0:
            said = b"failed"
            try:
                theirs = connection(client.get(origin.url("/get")))
                again = connection(client.get(origin.url("/get")))
                over_tls = connection(client.get(origin.url("/get", "tls-h2")))
                try:
                    streamed.read()
                except mimus.StreamConsumed:
                    if theirs == again != before and over_tls != secure:
                        said = b"fine"
                del streamed, client
            finally:
                os.write(write, said)
                os._exit(0)
        os.close(write)
        os.waitpid(child, 0)
        assert os.read(read, 100) == b"fine"
        os.close(read)
        assert len(streamed.content) == 2000000
    assert connection(client.get(origin.url("/get"))) == before
    assert connection(client.get(origin.url("/get", "tls-h2"))) == secure


def test_a_call_keeps_what_its_client_trusts(origin, tmp_path):
    both = tmp_path / "client.pem"
    with running(tmp_path / "ca.pem", "--port", "tls-client-cert", "--client-out", str(both)) as own:
        url = own.url("/get", "tls-client-cert")
        with mimus.Client(verify=own.ca) as client:
            with pytest.raises(mimus.Error):
                client.get(url)
            # Its authority is still the client's, and so is the way to say that nothing was meant.
            first = client.get(url, cert=both)
            assert first.ok and client.get(url, cert=(both, both), verify=None).ok
            assert client.get(url, cert=both, verify=own.ca).reused
            usual = client.get(own.url("/get", "https"))
            assert client.get(own.url("/get", "https"), verify=own.ca).reused and not usual.reused
        with mimus.Client(verify=own.ca, cert=both) as client:
            assert client.get(url).ok
            with pytest.raises(mimus.CertificateError):
                client.get(origin.url("/get", "https"))
    with pytest.raises(TypeError):
        mimus.Client(cert=3)
