"""mimus.requests without a server: URLs, names, exceptions, pickles, retries, and what it leaves alone."""

import builtins
import json
import pickle
import subprocess
import sys
import textwrap
import types

import pytest

from mimus import requests
from mimus.requests import _idna, _raw, _urls
from mimus.requests.adapters import HTTPAdapter, MaxRetryError, Retry
from mimus.requests.cookies import RequestsCookieJar
from mimus.requests.structures import CaseInsensitiveDict


def fresh(code):
    """What a new interpreter prints."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_mimus_alone_does_not_import_it():
    assert fresh("import mimus, sys; print('mimus.requests' in sys.modules)") == "False"


def test_it_needs_and_shadows_nothing():
    said = fresh(
        """
        import sys
        class Absent:
            def find_spec(self, name, path=None, target=None):
                others = ('requests', 'urllib3', 'idna', 'chardet', 'charset_normalizer', 'certifi')
                if name.partition('.')[0] in others:
                    raise ImportError(name)
        sys.meta_path.insert(0, Absent())
        import importlib, pkgutil
        from mimus import requests
        for module in pkgutil.iter_modules(requests.__path__):
            importlib.import_module(f'mimus.requests.{module.name}')
        print(requests.Session().headers['Accept'], 'requests' in sys.modules, 'urllib3' in sys.modules)
        """
    )
    assert said == "*/* False False"


def test_importing_it_leaves_the_name_to_others():
    assert fresh("import mimus.requests, sys; print('requests' in sys.modules)") == "False"


# Python's own classes, which `except` knows without importing anything.


@pytest.mark.parametrize(
    ("ours", "pythons"),
    [
        (requests.RequestException, builtins.OSError),
        (requests.ConnectionError, builtins.ConnectionError),
        (requests.Timeout, builtins.TimeoutError),
        (requests.ConnectTimeout, builtins.ConnectionError),
        (requests.ConnectTimeout, builtins.TimeoutError),
        (requests.exceptions.InvalidURL, builtins.ValueError),
        (requests.exceptions.InvalidHeader, builtins.ValueError),
        (requests.exceptions.StreamConsumedError, builtins.TypeError),
        (requests.JSONDecodeError, json.JSONDecodeError),
    ],
)
def test_exceptions_are_also_pythons(ours, pythons):
    assert issubclass(ours, pythons)
    assert issubclass(ours, requests.RequestException)


SESSION = """adapters auth cert close cookies delete get get_adapter get_redirect_target head headers hooks
    max_redirects merge_environment_settings mount options params patch post prepare_request proxies put rebuild_auth
    rebuild_method rebuild_proxies request resolve_redirects send should_strip_auth stream trust_env verify""".split()
RESPONSE = """apparent_encoding close content cookies elapsed encoding headers history is_permanent_redirect is_redirect
    iter_content iter_lines json links next ok raise_for_status raw reason request status_code text url""".split()


def test_sessions_and_answers_have_requests_attributes():
    def public(value):
        return {name for name in dir(value) if not name.startswith("_")}

    assert len(SESSION) == 32
    assert public(requests.Session()) == set(SESSION)
    assert public(requests.Response()) >= set(RESPONSE)


# URLs


@pytest.mark.parametrize(
    ("url", "prepared"),
    [
        ("http://Example.COM", "http://example.com/"),
        ("http://example.com/a/../b/./c", "http://example.com/b/c"),
        ("http://example.com/a/..", "http://example.com/"),
        ("http://example.com/%7euser/%e4", "http://example.com/~user/%E4"),
        ("http://example.com/100%", "http://example.com/100%25"),
        ("http://example.com\\@evil.test/", "http://example.com/%5C@evil.test/"),
        ("http://user:pass@[::1]:8080/", "http://user:pass@[::1]:8080/"),
        ("http://bücher.test/", "http://xn--bcher-kva.test/"),
        ("http://faß.test/", "http://xn--fa-hia.test/"),
        ("http://日本。test/", "http://xn--wgv71a.test/"),
    ],
)
def test_urls_are_put_right(url, prepared):
    assert requests.Request("GET", url).prepare().url == prepared


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://[fe80::zz]/", "http://a:99999/", "http://a b.test/", "http://a:b:c/", "http://@/"]
)
def test_urls_that_are_none(url):
    with pytest.raises(requests.exceptions.InvalidURL):
        requests.Request("GET", url).prepare()


@pytest.mark.parametrize("host", ["☃.net", "a\u0301\u0640.test", "-ü.test", "ü-.test", "a" * 70 + "ü.test", "ü..test"])
def test_names_that_idna_does_not_allow(host):
    with pytest.raises(ValueError):
        _idna.to_ascii(host)


def test_params_go_behind_the_query():
    request = requests.Request("GET", "http://a.test/?x=1#f", params=[("y", [1, 2]), ("z", None)])
    assert request.prepare().url == "http://a.test/?x=1&y=1&y=2#f"


def test_a_url_is_parsed_as_it_is_read():
    assert _urls.parse_url("https://u:p@h.test:1/p?q#f") == ("https", "u:p", "h.test", 1, "/p", "q", "f")


# Bodies


def test_a_form_cannot_add_headers_to_its_parts():
    with pytest.raises(requests.exceptions.InvalidHeader):
        requests.Request("POST", "http://a.test/", files={"f": ("n", b"x", "text/plain\r\nX: y")}).prepare()
    body = requests.Request("POST", "http://a.test/", files={'f"\r\n': ('n"\r\n', b"x")}).prepare().body
    assert b'name="f%22%0D%0A"; filename="n%22%0D%0A"\r\n\r\nx' in body


@pytest.mark.parametrize("data", [b"abc", bytearray(b"abc"), memoryview(b"abc"), "abc"])
def test_what_is_in_memory_has_a_length(data):
    prepared = requests.Request("POST", "http://a.test/", data=data).prepare()
    assert prepared.headers["Content-Length"] == "3"
    assert "Content-Type" not in prepared.headers


# Mappings


def test_fields_that_repeat_are_one_and_can_be_parted():
    fields = _raw.HTTPHeaderDict([("Set-Cookie", "a=1"), ("X", "y"), ("set-cookie", "b=2")])
    assert fields["SET-COOKIE"] == "a=1, b=2"
    assert fields.getlist("Set-Cookie") == ["a=1", "b=2"]
    assert fields.copy().get_all("x") == ["y"]
    fields["Set-Cookie"] = "c=3"
    assert fields.getlist("set-cookie") == ["c=3"]
    del fields["Set-Cookie"]
    assert fields.get_all("set-cookie", []) == []


def test_a_dictionary_in_any_case_pickles_and_compares():
    named = CaseInsensitiveDict({"Accept": "x"}, host="y")
    assert pickle.loads(pickle.dumps(named)) == {"ACCEPT": "x", "HOST": "y"}
    assert named.items() == {("Accept", "x"), ("host", "y")}
    assert named != 7


def test_a_jar_pickles_with_its_policy():
    jar = RequestsCookieJar()
    jar.set("a", "b", domain="a.test")
    jar.get_policy().set_blocked_domains([".b.test"])
    again = pickle.loads(pickle.dumps(jar))
    assert again.get_dict() == {"a": "b"}
    assert again.get_policy().blocked_domains() == (".b.test",)
    jar.set("a", None)
    assert not jar


# Pickles


def test_a_session_pickles_by_its_state():
    session = requests.Session()
    session.headers["X"] = "y"
    session.cookies["a"] = "b"
    session.auth = requests.auth.HTTPDigestAuth("u", "p")
    session.mount("https://a.test/", HTTPAdapter(pool_maxsize=3, max_retries=2, http_version="1.1"))
    again = pickle.loads(pickle.dumps(session))
    assert again.headers == session.headers
    assert again.cookies.get_dict() == {"a": "b"}
    assert again.auth == session.auth
    adapter = again.get_adapter("https://a.test/x")
    assert (adapter._pool_maxsize, adapter.max_retries.total, adapter._options) == (3, 2, {"http_version": "1.1"})


# Retries


def failure(**told):
    import mimus

    return mimus.ConnectError("no", kind="connect", phase="connect", **told)


def test_retries_are_counted_by_their_cause():
    retries = Retry(total=5, connect=1, status=1, status_forcelist=[503])
    once = retries.increment("GET", "http://a.test/", error=failure())
    assert (once.total, once.connect, once.status) == (4, 0, 1)
    with pytest.raises(MaxRetryError):
        once.increment("GET", "http://a.test/", error=failure())
    assert retries.is_retry("GET", 503)
    assert not retries.is_retry("POST", 503)
    assert not retries.is_retry("GET", 500)


def test_what_may_have_been_served_is_not_sent_again_unless_it_may_be():
    sent = failure(was_sent=True)
    with pytest.raises(type(sent)):
        Retry(3).increment("POST", "http://a.test/", error=sent)
    assert Retry(3).increment("GET", "http://a.test/", error=sent).total == 2
    with pytest.raises(type(sent)):
        Retry(False).increment("GET", "http://a.test/", error=sent)


def test_waits_grow_and_end():
    retries = Retry(9, backoff_factor=1, backoff_max=5)
    waits = []
    for _ in range(5):
        retries = retries.increment("GET", "/", error=failure())
        waits.append(retries.get_backoff_time())
    assert waits == [0, 2, 4, 5, 5]


@pytest.mark.parametrize(
    ("said", "seconds"), [("7", 7), ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("soon", None), ("9" * 9, 21600)]
)
def test_retry_after(said, seconds):
    answer = types.SimpleNamespace(headers={"Retry-After": said})
    assert Retry(3).get_retry_after(answer) == seconds


# Timeouts


@pytest.mark.parametrize("timeout", [0, -1, (1, 0), True, "1", (1, "x"), (1, 2, 3)])
def test_timeouts_that_are_none(timeout):
    with pytest.raises(ValueError, match="timeout"):
        requests.get("http://127.0.0.1:1/", timeout=timeout)


# urllib3's own objects, where it is installed.


def test_urllib3s_retry_and_timeout_will_do():
    util = pytest.importorskip("urllib3.util")
    with requests.Session() as session:
        session.mount("http://", HTTPAdapter(max_retries=util.Retry(2, backoff_factor=0)))
        with pytest.raises(requests.ConnectionError):
            session.get("http://127.0.0.1:1/", timeout=util.Timeout(read=30))
