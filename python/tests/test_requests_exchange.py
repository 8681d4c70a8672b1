"""mimus.requests against the embedded origin: what requests' own suite does not ask."""

import gzip
import io
import json
import pickle
import threading

import pytest

from mimus import requests
from mimus.requests.adapters import BaseAdapter, HTTPAdapter, Retry

SETTINGS = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "requests_ca_bundle", "curl_ca_bundle", "netrc")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def session(origin):
    with requests.Session() as session:
        session.verify = str(origin.ca)
        yield session


def connection(response):
    """Our end of the connection that the answer came by."""
    return response.raw.native.local_addr


# Connections


def test_a_session_keeps_its_connection(origin, session):
    answers = [session.get(origin.url("/get")) for _ in range(20)]
    assert len({connection(answer) for answer in answers}) == 1
    assert not answers[0].raw.native.reused
    assert all(answer.raw.native.reused for answer in answers[1:])


def test_over_tls_too(origin, session):
    answers = [session.get(origin.url("/get", "https")) for _ in range(5)]
    assert len({connection(answer) for answer in answers}) == 1


def test_redirects_and_errors_keep_it(origin, session):
    first = session.get(origin.url("/redirect/3"))
    assert session.get(origin.url("/status/404")).status_code == 404
    answers = (*first.history, first, session.get(origin.url("/get")))
    assert {connection(each) for each in answers} == {connection(first)}


def test_a_stream_read_to_its_end_gives_it_back(origin, session):
    first = session.get(origin.url("/stream/5"), stream=True)
    assert len(list(first.iter_lines())) == 5
    assert connection(session.get(origin.url("/get"))) == connection(first)


def test_one_that_is_left_does_not(origin, session):
    with session.get(origin.url("/bytes/5000000"), stream=True) as first:
        assert len(first.raw.read(10)) == 10
    assert connection(session.get(origin.url("/get"))) != connection(first)


def test_http2_where_it_is_offered(origin, session):
    answers = [session.get(origin.url("/headers", "tls-h2-http1")) for _ in range(3)]
    assert {answer.raw.version for answer in answers} == {20}
    assert len({connection(answer) for answer in answers}) == 1
    names = {name.lower() for name, _ in _lines(answers[0])}
    assert "connection" not in names


def _lines(answer):
    said = answer.json()["headers"]
    return [(name, value) for name, value in (said.items() if isinstance(said, dict) else said)]


def test_an_adapter_takes_the_native_clients_options(origin, session):
    session.mount("http://named.test", HTTPAdapter(resolve={"named.test": "127.0.0.1"}))
    port = origin.http.rpartition(":")[2]
    assert session.get(f"http://named.test:{port}/get").status_code == 200
    session.mount("http://named.test", HTTPAdapter(ssl_context=None))
    with pytest.raises(TypeError, match="ssl_context"):
        session.get(f"http://named.test:{port}/get")


# Streams


def test_a_stream_comes_at_its_head(origin, session):
    """The body takes a minute; the head, and the first of it, do not wait for that."""
    with session.get(origin.url("/drip?numbytes=60&duration=60"), stream=True) as answer:
        assert answer.status_code == 200
        assert len(answer.raw.read(1)) == 1


def test_what_is_coded_is_read_either_way(origin, session):
    with session.get(origin.url("/gzip"), stream=True) as answer:
        coded = answer.raw.read()
    assert gzip.decompress(coded)
    with session.get(origin.url("/gzip"), stream=True) as answer:
        assert answer.raw.read(decode_content=True) == gzip.decompress(coded)
    with session.get(origin.url("/gzip"), stream=True) as answer:
        answer.raw.decode_content = True
        assert io.BufferedReader(answer.raw).read() == gzip.decompress(coded)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "brotli", "zstd"])
def test_each_coding_is_undone(origin, session, coding):
    assert isinstance(session.get(origin.url(f"/{coding}")).json(), dict)


def test_pieces_are_as_large_as_asked_for_where_the_length_is_known(origin, session):
    with session.get(origin.url("/bytes/100000"), stream=True) as answer:
        sizes = [len(piece) for piece in answer.iter_content(30_000)]
    assert sizes == [30_000, 30_000, 30_000, 10_000]


def test_lines_of_a_file(origin, session):
    with session.get(origin.url("/stream/3"), stream=True) as answer:
        assert [json.loads(line)["id"] for line in answer.raw] == [0, 1, 2]


def test_a_body_is_read_once(origin, session):
    answer = session.get(origin.url("/bytes/10"), stream=True)
    assert len(b"".join(answer.iter_content(3))) == 10
    with pytest.raises(requests.exceptions.StreamConsumedError):
        answer.iter_content(3)
    with pytest.raises(RuntimeError):
        _ = answer.content


# Uploads


class Reader:
    """A file that knows its length, and only reads."""

    def __init__(self, data):
        self.len = len(data)
        self.read = io.BytesIO(data).read


@pytest.mark.parametrize("length", [0, 5, 3_000_000])
def test_uploads_of_all_kinds(origin, session, length, tmp_path):
    data = bytes(range(256)) * (length // 256) + b"x" * (length % 256)
    path = tmp_path / "body"
    path.write_bytes(data)
    with path.open("rb") as file:
        bodies = [data, bytearray(data), io.BytesIO(data), Reader(data), file, iter([data[:7], data[7:]])]
        said = [session.post(origin.url("/upload"), data=body).json() for body in bodies]
    assert len({json.dumps({k: v for k, v in each.items() if "sha" in k or "length" in k}) for each in said}) == 1


def test_a_generator_that_fails_says_so_itself(origin, session):
    class Mine(Exception):
        pass

    def body():
        yield b"x"
        raise Mine

    with pytest.raises(Mine):
        session.post(origin.url("/upload"), data=body())


# Failures


def test_failures_have_their_request_and_cause(origin, session):
    import mimus

    with pytest.raises(requests.ConnectionError) as caught:
        session.get(origin.url("/", "refused"))
    assert caught.value.request.url.startswith("http://")
    assert isinstance(caught.value.__cause__, mimus.ConnectError)


def test_a_body_that_drips_is_in_time_and_one_that_stalls_is_not(origin, session):
    assert len(session.get(origin.url("/drip?numbytes=5&duration=1"), timeout=30).content) == 5
    with pytest.raises(requests.ReadTimeout):
        session.get(origin.url("/delay/60"), timeout=(30, 0.2))
    with pytest.raises(requests.ConnectTimeout):
        session.get(origin.url("/", "no-accept"), timeout=(0.2, 30))


@pytest.mark.parametrize("port", ["tls-wrong-name", "tls-expired", "tls-self-signed"])
def test_certificates_that_are_not_trusted(origin, session, port):
    with pytest.raises(requests.exceptions.SSLError):
        session.get(origin.url("/get", port))
    assert session.get(origin.url("/get", port), verify=False).status_code == 200


def test_only_urls_of_https_need_certificates(origin, session):
    assert session.get(origin.url("/get"), verify="/nowhere", cert="/nowhere").status_code == 200
    with pytest.raises(OSError, match="/nowhere"):
        session.get(origin.url("/get", "https"), cert="/nowhere")


# Retries


def test_a_status_is_asked_for_again(origin, session):
    session.mount("http://", HTTPAdapter(max_retries=Retry(2, status_forcelist=[503])))
    with pytest.raises(requests.exceptions.RetryError):
        session.get(origin.url("/status/503"))
    session.mount("http://", HTTPAdapter(max_retries=Retry(2, status_forcelist=[503], raise_on_status=False)))
    assert session.get(origin.url("/status/503")).status_code == 503


def test_no_retry_hides_why_there_is_no_connection(origin, session):
    session.mount("http://", HTTPAdapter(max_retries=2))
    with pytest.raises(requests.ConnectionError):
        session.get(origin.url("/", "refused"))


# Proxies


def proxy(origin, port, credentials=""):
    return f"http://{credentials}{origin.ports[port]}"


def test_the_environment_names_a_proxy(origin, session, monkeypatch):
    monkeypatch.setenv("http_proxy", proxy(origin, "proxy-broken"))
    assert session.get(origin.url("/get")).status_code == 502
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert session.get(origin.url("/get")).status_code == 200
    monkeypatch.delenv("no_proxy")
    session.trust_env = False
    assert session.get(origin.url("/get")).status_code == 200


def test_a_proxy_is_used_for_both_schemes(origin, session):
    proxies = {"http": proxy(origin, "proxy"), "https": proxy(origin, "proxy")}
    assert session.get(origin.url("/get"), proxies=proxies).status_code == 200
    assert session.get(origin.url("/get", "https"), proxies=proxies).status_code == 200


def test_a_proxy_wants_to_know_who_asks(origin, session):
    wrong = {"http": proxy(origin, "proxy-auth"), "https": proxy(origin, "proxy-auth")}
    assert session.get(origin.url("/get"), proxies=wrong).status_code == 407
    with pytest.raises(requests.exceptions.ProxyError):
        session.get(origin.url("/get", "https"), proxies=wrong)


def test_socks(origin, session):
    proxies = {"all": f"socks5h://{origin.ports['socks']}"}
    assert session.get(origin.url("/get"), proxies=proxies).status_code == 200


def test_no_proxy_there(origin, session):
    with pytest.raises(requests.exceptions.ProxyError):
        session.get(origin.url("/get"), proxies={"http": proxy(origin, "refused")})


# Threads and pickles


def test_threads_share_a_session(origin, session):
    wrong = []

    def ask(number):
        for at in range(25):
            said = session.get(origin.url(f"/anything/{number}-{at}")).json()
            if not said["url"].endswith(f"/{number}-{at}"):
                wrong.append(said["url"])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_answers_and_sessions_pickle(origin, session):
    answer = session.get(origin.url("/redirect/1"), stream=True)
    again = pickle.loads(pickle.dumps(answer))
    assert (again.status_code, again.content, again.url) == (200, answer.content, answer.url)
    assert [each.status_code for each in again.history] == [302]
    assert pickle.loads(pickle.dumps(session)).get(origin.url("/get", "https")).status_code == 200


# What users bring along


def test_an_adapter_of_ones_own(session):
    class Canned(BaseAdapter):
        def send(self, request, **kwargs):
            response = requests.Response()
            response.status_code, response.url, response.request = 200, request.url, request
            response.raw = io.BytesIO(b"canned")
            return response

        def close(self):
            self.closed = True

    adapter = Canned()
    with requests.Session() as own:
        own.mount("canned://", adapter)
        assert own.get("canned://anything").content == b"canned"
    assert adapter.closed


def test_an_adapter_can_change_what_is_sent(origin, session):
    class Signed(HTTPAdapter):
        def add_headers(self, request, **kwargs):
            request.headers["X-Signed"] = request.method

    session.mount("http://", Signed())
    assert session.get(origin.url("/anything")).request.headers["X-Signed"] == "GET"
    lines = _lines(session.get(origin.url("/headers")))
    assert ("x-signed", "GET") in [(name.lower(), _one(value)) for name, value in lines]


def _one(value):
    return value[0] if isinstance(value, list) else value


def test_only_what_is_asked_for_is_sent(origin):
    with requests.Session() as session:
        session.headers.clear()
        names = {name.lower() for name, _ in _lines(session.get(origin.url("/headers")))}
    assert names == {"host"}


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256", "MD5-sess"])
def test_digest_by_the_embedded_origins_reading_of_it(origin, session, algorithm):
    auth = requests.auth.HTTPDigestAuth("user", "pass")
    url = origin.url(f"/digest-auth/auth/user/pass/{algorithm}")
    assert [session.get(url, auth=auth).status_code for _ in range(3)] == [200, 200, 200]


def test_cookies_are_kept_and_sent(origin, session):
    session.get(origin.url("/cookies/set?a=1&b=2"))
    assert session.cookies.get_dict() == {"a": "1", "b": "2"}
    assert "a=1" in session.get(origin.url("/get")).request.headers["Cookie"]
    assert requests.get(origin.url("/cookies/set?a=1"), allow_redirects=False).cookies["a"] == "1"


def test_the_raw_answer_is_a_file(origin, session):
    with session.get(origin.url("/stream/4"), stream=True) as answer:
        raw = answer.raw
        assert isinstance(raw, io.IOBase)
        first = raw.readline()
        assert first.endswith(b"\n") and json.loads(first)["id"] == 0
        assert raw.readline(3) == b'{"i' or raw.tell() == len(first) + 3
        raw.readline()
        assert [json.loads(line)["id"] for line in raw.readlines()] == [2, 3]
        assert raw.read() == raw.readline() == b""
    with session.get(origin.url("/stream/4"), stream=True) as answer:
        text = io.TextIOWrapper(io.BufferedReader(answer.raw), encoding="utf-8")
        assert [json.loads(line)["id"] for line in text] == [0, 1, 2, 3]
    assert answer.raw.closed


def test_an_adapter_can_choose_its_connection(origin, session):
    import mimus

    class Mine(HTTPAdapter):
        def get_connection_with_tls_context(self, request, verify, proxies=None, cert=None):
            return own

    with mimus.Client(default_headers=False, follow_redirects=False) as own:
        session.mount("http://", Mine())
        assert session.get(origin.url("/get")).status_code == 200


def test_a_certificate_that_is_none(origin, session, tmp_path):
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("nothing")
    with pytest.raises(requests.exceptions.SSLError):
        session.get(origin.url("/get", "https"), cert=str(nothing))


def test_a_proxy_that_wants_to_know_is_told_once(origin, session):
    proxies = {
        "http": proxy(origin, "proxy-auth", "user:secret@"),
        "https": proxy(origin, "proxy-auth", "user:secret@"),
    }
    for path in ("/get", "/redirect/2", f"/redirect-to?url={origin.url('/get', 'https')}"):
        assert session.get(origin.url(path), proxies=proxies).status_code == 200


def test_elapsed_is_until_the_head(origin, session):
    answer = session.get(origin.url("/drip?numbytes=5&duration=1"))
    assert answer.elapsed < answer.raw.native.elapsed


# Servers that mean no good


@pytest.mark.parametrize("target", ["http://[::1", "http://a:99999/", "http://a:x/", "//[", "http://%zz/"])
def test_redirects_to_what_is_no_url(origin, session, target):
    with pytest.raises(requests.exceptions.InvalidURL):
        session.get(origin.url("/redirect-to"), params={"url": target}, auth=("user", "pass"))


@pytest.mark.parametrize("charset", ["hex", "idna", "undefined", "nothing", "utf-8\x00", "base64", "unicode_escape"])
def test_encodings_that_are_none(charset):
    response = requests.Response()
    response._content, response._content_consumed, response.encoding = b"a\xff\\x", True, charset
    assert response.text.startswith("a")
    assert "".join(response.iter_content(2, decode_unicode=True)).startswith("a")


@pytest.mark.parametrize(
    "challenge",
    ["Digest", "Digest nonce", 'Digest realm="a"', 'Digest realm="a", nonce="b", algorithm=x', "Digest =,=,"],
)
def test_challenges_that_cannot_be_met(origin, session, challenge):
    class Refused(HTTPAdapter):
        def build_response(self, req, resp):
            response = super().build_response(req, resp)
            response.status_code, response.headers["WWW-Authenticate"] = 401, challenge
            return response

    session.mount("http://", Refused())
    assert session.get(origin.url("/get"), auth=requests.auth.HTTPDigestAuth("u", "p")).status_code == 401


def test_a_header_in_no_alphabet_of_http(origin, session):
    assert session.get(origin.url("/get"), headers={"X": "ü"}).status_code == 200
    with pytest.raises(requests.exceptions.InvalidHeader):
        session.get(origin.url("/get"), headers={"X": "日"})
