"""`mimus.adapters.requests` and `mimus.scrapy` under the real packages."""

import gzip
import io
import json
import os
import subprocess
import sys

import pytest

import mimus


@pytest.fixture
def requests():
    return pytest.importorskip("requests", reason="requests is not installed")


@pytest.fixture
def adapter(requests):
    from mimus.adapters.requests import HTTPAdapter

    return HTTPAdapter


@pytest.fixture
def session(requests, adapter, origin):
    with requests.Session() as session:
        session.trust_env = False
        session.verify = origin.ca
        session.mount("http://", adapter())
        session.mount("https://", adapter())
        yield session


@pytest.mark.parametrize(
    ("module", "blocked", "extra"),
    [("mimus.adapters.requests", "requests", "requests"), ("mimus.scrapy", "scrapy", "scrapy")],
)
def test_what_is_missing_is_named(module, blocked, extra):
    program = f"""
import sys
sys.modules[{blocked!r}] = None
try:
    import {module}
except ImportError as error:
    assert "pip install 'mimus[{extra}]'" in str(error), error
else:
    raise AssertionError("it was imported")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_requests_says_is_sent_and_nothing_else(session, origin):
    response = session.get(origin.http + "/anything?a=1", headers={"X-Own": "x", "Accept-Encoding": None})
    said = list(response.request.headers.items())
    assert response.json()["headers"] == [["Host", origin.http[7:]], *map(list, said)]
    assert ("X-Own", "x") in said


def test_what_the_response_tells(session, origin):
    response = session.get(origin.https + "/response-headers?X-A=1&X-A=2")
    assert (response.status_code, response.reason, response.ok) == (200, "OK", True)
    assert response.headers["x-a"] == "1, 2"
    assert response.raw.headers.getlist("X-A") == ["1", "2"]
    assert (response.raw.version, response.raw.status) == (11, 200)
    assert response.raw.mimus.tls.version == "TLSv1.3"
    assert response.elapsed.total_seconds() > 0


def test_cookies_redirects_and_credentials_are_requests_own(session, origin):
    response = session.get(origin.http + "/cookies/set?a=1&b=2")
    assert [hop.status_code for hop in response.history] == [302]
    assert session.cookies.get_dict() == {"a": "1", "b": "2"}
    assert session.get(origin.http.replace("://", "://user:pw@") + "/basic-auth/user/pw").status_code == 200
    digest = sys.modules["requests"].auth.HTTPDigestAuth("u", "p")
    assert session.get(origin.http + "/digest-auth/auth/u/p", auth=digest).status_code == 200


def bodies():
    yield "form", {"data": {"a": "1", "b": "ö"}}, None
    yield "bytes", {"data": b"0123456789"}, None
    yield "json", {"json": {"a": [1, 2]}}, None
    yield "file", {"data": lambda: io.BytesIO(b"0123456789")}, None
    yield "multipart", {"files": {"f": ("name.txt", b"0123456789")}, "data": {"a": "1"}}, None
    yield "pieces", {"data": lambda: iter([b"01", b"23"])}, "chunked"


@pytest.mark.parametrize(("body", "coding"), [pytest.param(b, c, id=name) for name, b, c in bodies()])
def test_bodies_arrive_as_they_were_announced(session, origin, body, coding):
    body = {name: value() if callable(value) else value for name, value in body.items()}
    echoed = session.post(origin.http + "/anything", **body).json()
    fields = {name.lower(): value for name, value in echoed["headers"]}
    assert fields.get("transfer-encoding") == coding
    assert coding or int(fields["content-length"]) == echoed["body_length"] > 0


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_bodies_are_decoded_by_urllib3(session, origin, coding):
    url = f"{origin.http}/{coding}"
    assert session.get(url).json()["coded"]
    streamed = session.get(url, stream=True)
    assert json.loads(b"".join(streamed.iter_content(7)))["coded"]
    raw = session.get(url, stream=True).raw
    if coding == "gzip":
        assert json.loads(gzip.decompress(raw.read()))["coded"] == "gzip"
    assert json.loads(session.get(url, stream=True).raw.read(decode_content=True))["coded"]


def test_the_raw_body_is_a_file(session, origin):
    whole = session.get(origin.http + "/bytes/1000").content
    raw = session.get(origin.http + "/bytes/1000", stream=True).raw
    parts = [raw.read(10), raw.read(100), raw.read()]
    assert [len(part) for part in parts] == [10, 100, 890] and b"".join(parts) == whole
    assert raw.read() == b""
    chunks = list(session.get(origin.http + "/stream-bytes/1000?chunk_size=300", stream=True).iter_content(128))
    assert max(map(len, chunks)) <= 128 and b"".join(chunks) == whole


def test_a_stream_comes_as_it_comes_and_may_be_left(session, origin):
    with session.get(origin.http + "/sse/every/5", stream=True, timeout=30) as response:
        lines = response.iter_lines()
        assert [next(lines) for _ in range(4)]
    assert session.get(origin.http + "/get").ok


def test_connections_are_used_again(session, origin):
    echoes = [session.get(origin.http + "/anything").json() for _ in range(10)]
    assert len({echo["connection"] for echo in echoes}) == 1


FAILURES = (
    ("http", "refused", "/", "ConnectionError"),
    ("http", "no-accept", "/", "ConnectTimeout"),
    ("http", "http", "/delay/30", "ReadTimeout"),
    ("http", "close-on-accept", "/", "ConnectionError"),
    ("http", "http", "/bad/truncate", "ChunkedEncodingError"),
    ("http", "http", "/bad/truncate-in-chunk", "ChunkedEncodingError"),
    ("https", "tls-self-signed", "/", "SSLError"),
    ("https", "tls-expired", "/", "SSLError"),
)


@pytest.mark.parametrize(("scheme", "port", "path", "name"), FAILURES)
def test_failures(requests, session, origin, scheme, port, path, name):
    number = origin.ports[port].rpartition(":")[2]
    # Short only where it is to pass, for a slow machine must not be what fails elsewhere.
    timeout = {"ConnectTimeout": (0.3, 30), "ReadTimeout": (30, 0.3)}.get(name, 30)
    with pytest.raises(getattr(requests.exceptions, name)) as caught:
        session.get(f"{scheme}://localhost:{number}{path}", timeout=timeout)
    assert caught.value.request is None or caught.value.request.url.startswith(scheme)


def test_a_body_that_stops_times_out(requests, session, origin):
    response = session.get(origin.http + "/sse/every/60000", timeout=(30, 3), stream=True)
    with pytest.raises(requests.exceptions.ConnectionError, match="[Tt]imed out"):
        response.content  # noqa: B018


def test_timeouts_are_as_requests_has_them(session, origin):
    for timeout in (None, 30, 30.0, (30, 30), (None, 30)):
        assert session.get(origin.http + "/get", timeout=timeout).ok
    with pytest.raises(ValueError, match="connect, read"):
        session.get(origin.http + "/get", timeout=(1, 2, 3))


def test_verification(requests, session, origin):
    assert session.get(origin.https + "/get", verify=origin.ca).ok
    assert session.get(origin.https + "/get", verify=False).ok
    with pytest.raises(requests.exceptions.SSLError):
        session.get(origin.https + "/get", verify=True)
    with pytest.raises(OSError):
        session.get(origin.https + "/get", verify="/nowhere.pem")


def test_proxies(requests, session, origin):
    working = (origin.ports["proxy"], f"http://user:secret@{origin.ports['proxy-auth']}")
    for proxy in (*working, f"socks5h://{origin.ports['socks']}"):
        proxies = {"http": proxy, "https": proxy}
        assert session.get(origin.http + "/get", proxies=proxies).ok
        assert session.get(origin.https + "/get", proxies=proxies).ok
    with pytest.raises(requests.exceptions.ProxyError):
        session.get(origin.https + "/get", proxies={"https": f"http://{origin.ports['proxy-auth']}"})


def test_settings_of_the_adapter(requests, adapter, origin):
    with requests.Session() as session:
        session.trust_env = False
        session.verify = origin.ca
        session.mount("https://", adapter(profile="chrome", limits=mimus.Limits(max_connections=2)))
        session.mount("http://", adapter(http1=False, resolve={"elsewhere.test": "127.0.0.1"}))
        port = origin.ports["tls-h2-http1"].rpartition(":")[2]
        assert session.get(f"https://localhost:{port}/get").raw.version == 20
        port = origin.ports["h2c"].rpartition(":")[2]
        assert session.get(f"http://elsewhere.test:{port}/get").raw.version_string == "HTTP/2"
    with pytest.raises(ValueError, match="neither"):
        adapter(http1=False, http2=False)


SPIDER = """
import json, sys
import scrapy
from scrapy.crawler import CrawlerProcess

http, https, proxy = sys.argv[1:]
found = {}

class Spider(scrapy.Spider):
    name = "spider"

    async def start(self):
        def get(name, url, **options):
            options.setdefault("meta", {}).update(name=name)
            return scrapy.Request(url, self.parse, errback=self.failed, dont_filter=True, **options)

        yield get("page", http + "/html")
        yield get("moved", http + "/redirect/2")
        yield get("coded", http + "/gzip")
        yield get("posted", http + "/anything", method="POST", body="x=1", headers={"X-Own": ["1", "2"]})
        yield get("secure", https + "/get")
        yield get("proxied", http + "/get", meta={"proxy": proxy})
        yield get("late", http + "/delay/30", meta={"download_timeout": 0.5})
        yield get("cut", http + "/bad/truncate")
        yield get("nowhere", "http://nowhere.invalid/")
        yield get("own", "http://elsewhere.test:" + http.rpartition(":")[2] + "/get",
                  meta={"mimus": {"resolve": {"elsewhere.test": "127.0.0.1"}}})

    def parse(self, response):
        found[response.meta["name"]] = [response.status, response.protocol, response.certificate is not None,
                                        response.text]

    def failed(self, failure):
        found[failure.request.meta["name"]] = failure.type.__name__

handler = "mimus.scrapy.DownloadHandler"
process = CrawlerProcess({
    "DOWNLOAD_HANDLERS": {"http": handler, "https": handler}, "RETRY_ENABLED": False, "LOG_LEVEL": "CRITICAL",
    "TELNETCONSOLE_ENABLED": False, "DOWNLOAD_DELAY": 0, "ROBOTSTXT_OBEY": False,
})
process.crawl(Spider)
process.start()
print(json.dumps(found))
"""


def test_scrapy_downloads_with_mimus(origin, tmp_path):
    pytest.importorskip("scrapy", reason="Scrapy is not installed")
    command = [sys.executable, "-c", SPIDER, origin.http, origin.https, f"http://{origin.ports['proxy']}"]
    # Scrapy says no more than "NotSupported" where it does not find the package that this test found.
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=paths)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name in ("page", "moved", "coded", "posted", "proxied", "own"):
        assert found[name][:3] == [200, "HTTP/1.1", False], name
    assert found["secure"][:3] == [200, "HTTP/1.1", True]
    assert json.loads(found["coded"][3])["coded"] == "gzip"
    posted = json.loads(found["posted"][3])
    assert (posted["method"], posted["data"]) == ("POST", "x=1")
    assert [value for name, value in posted["headers"] if name.lower() == "x-own"] == ["1", "2"]
    assert found["late"] == "DownloadTimeoutError"
    assert found["cut"] == "ResponseDataLossError"
    assert found["nowhere"] == "CannotResolveHostError"
