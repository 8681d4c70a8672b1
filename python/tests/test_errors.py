"""What goes wrong, as exceptions."""

import builtins
import socket
import threading
import time

import pytest

import mimus


def test_every_exception_is_of_the_one_tree():
    classes = [value for value in vars(mimus).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert len(classes) > 20
    for kind in classes:
        assert issubclass(kind, mimus.Error)
        assert kind("said").args == ("said",)
    assert issubclass(mimus.ConnectTimeout, mimus.ConnectError)
    assert issubclass(mimus.ReadTimeout, builtins.TimeoutError)
    assert issubclass(mimus.ConnectError, ConnectionError)
    assert issubclass(mimus.InvalidURL, ValueError)


@pytest.mark.parametrize("url", ["", "no url", "ftp://host/", "http://", "http://a b/", "http://[::1/", "http://h:99999/"])
def test_urls_that_are_none(client, url):
    with pytest.raises(mimus.InvalidURL) as caught:
        client.get(url)
    assert caught.value.kind == "request" and not caught.value.was_sent


def test_urls_are_strings(client):
    for url in (None, b"http://127.0.0.1/"):
        with pytest.raises(TypeError):
            client.get(url)


def test_nobody_listens(client, origin):
    with pytest.raises(mimus.ConnectError) as caught:
        client.get(origin.url("/", "refused"))
    error = caught.value
    assert (error.kind, error.phase, error.url) == ("connect", "connect", origin.url("/", "refused"))
    assert error.is_retryable and not error.was_sent
    assert "refused" in str(error).lower()


def test_no_such_name(client):
    with pytest.raises(mimus.ResolveError) as caught:
        client.get("http://no-such-host.invalid/")
    assert caught.value.phase == "resolve"


@pytest.mark.parametrize("port", ["tls-wrong-name", "tls-expired", "tls-not-yet-valid", "tls-self-signed"])
def test_certificates_that_are_not_accepted(client, origin, port):
    with pytest.raises(mimus.CertificateError) as caught:
        client.get(origin.url("/get", port))
    assert (caught.value.kind, caught.value.phase) == ("certificate", "tls")
    assert client.get(origin.url("/get", port), verify=False).ok


@pytest.mark.parametrize("port", ["tls-reset", "tls-close", "tls-garbage"])
def test_handshakes_that_fail(client, origin, port):
    with pytest.raises(mimus.TlsError):
        client.get(origin.url("/get", port))


@pytest.mark.parametrize("port", ["reset-on-accept", "close-on-accept"])
def test_servers_that_leave(client, origin, port):
    # A reset may come before the connection is known to stand.
    with pytest.raises((mimus.ConnectionLost, mimus.ConnectError)) as caught:
        client.post(origin.url("/post", port), content=b"x")
    assert isinstance(caught.value, ConnectionError)


def test_bodies_that_end_too_early():
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        for _ in range(2):
            peer, _ = listener.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\nhalf")

    thread = threading.Thread(target=serve)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    with mimus.Client() as client:
        with pytest.raises(mimus.ConnectionLost) as caught:
            client.get(url)
        assert (caught.value.phase, caught.value.url, caught.value.was_sent) == ("body", url, True)
        with client.get(url, stream=True) as response:
            with pytest.raises(mimus.ConnectionLost):
                list(response)
            with pytest.raises(mimus.StreamConsumed):
                response.read()
    thread.join()
    listener.close()


def test_what_is_no_http():
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        peer, _ = listener.accept()
        with peer:
            peer.recv(65536)
            peer.sendall(b"SSH-2.0-OpenSSH\r\n\r\n")

    thread = threading.Thread(target=serve)
    thread.start()
    with mimus.Client() as client, pytest.raises(mimus.ProtocolError):
        client.get(f"http://127.0.0.1:{listener.getsockname()[1]}/")
    thread.join()
    listener.close()


def test_a_broken_coding(client, origin):
    with pytest.raises(mimus.DecodeError):
        client.get(origin.url("/response-headers?Content-Encoding=gzip"))


def test_a_total_timeout_ends_a_dripping_body(client, origin):
    started = time.monotonic()
    with pytest.raises(mimus.ReadTimeout) as caught:
        client.get(origin.url("/drip?numbytes=6000&duration=60"), timeout=2)
    # It would have gone on for a minute.
    assert time.monotonic() - started < 30
    assert caught.value.phase == "body"


def test_each_timeout_has_its_phase(client, origin):
    def expect(kind, phase, url, **options):
        with pytest.raises(kind) as caught:
            client.post(url, **options)
        assert isinstance(caught.value, TimeoutError)
        assert (caught.value.kind, caught.value.phase) == ("timeout", phase)

    def only(**limit):
        return mimus.Timeout(**{"connect": None, "read": None, "write": None} | limit)

    expect(mimus.ReadTimeout, "head", origin.url("/delay/60"), timeout=only(read=0.2))
    # Long enough for TCP, on whatever machine.
    expect(mimus.ConnectTimeout, "tls", origin.url("/get", "tls-stall"), timeout=only(connect=3))
    expect(mimus.ConnectTimeout, "connect", origin.url("/get", "no-accept"), timeout=only(connect=0.2))
    large = b"x" * (64 << 20)
    expect(mimus.WriteTimeout, "send", origin.url("/post", "never-read"), timeout=only(write=0.2), content=large)


def test_the_pool_has_a_timeout(origin):
    limits = mimus.Limits(max_connections=1)
    with mimus.Client(limits=limits, timeout=mimus.Timeout(pool=0.1)) as client:
        with client.get(origin.url("/drip?duration=60"), stream=True):
            with pytest.raises(mimus.PoolTimeout):
                client.get(origin.url("/get"))
        assert client.get(origin.url("/get")).ok


def test_timeouts_are_settings():
    timeout = mimus.Timeout(5, connect=None, read=1)
    assert (timeout.total, timeout.connect, timeout.read, timeout.write) == (5.0, None, 1.0, 300.0)
    assert timeout == mimus.Timeout(total=5, connect=None, read=1)
    assert repr(timeout) == "Timeout(total=5.0, connect=None, read=1.0, write=300.0, pool=None)"
    for bad in (-1, float("nan")):
        with pytest.raises(ValueError):
            mimus.Timeout(bad)
    for bad in ("1", True):
        with pytest.raises(TypeError):
            mimus.Timeout(bad)
    assert mimus.Timeout(float("inf")).total is None


def test_arguments_may_change_while_they_are_read(client, origin):
    class Busy(int):
        def __str__(self):
            params[f"more{len(params)}"] = 1
            return "7"

    params = {"n": Busy(7), "m": 1}
    assert client.get(origin.url("/get"), params=params).json()["args"] == {"n": "7", "m": "1"}
