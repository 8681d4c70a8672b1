"""What annotations say of arguments, against the arguments that there are. `make python-types` checks the rest."""

import inspect
import re
import typing

import pytest
from conftest import ROOT

import mimus
from mimus import types

PROFILES = ROOT / "crates" / "client" / "src" / "profile"
ARGUMENTS = ROOT / "python" / "src" / "args"


def names_in(file, pattern):
    """The words in the one place of a source that the pattern finds."""
    [place] = re.findall(pattern, file.read_text(), re.DOTALL)
    return re.findall(r"[\w.-]+", re.sub(r"//[^\n]*", "", place))


def test_each_profile_is_named():
    names = set()
    for file in (PROFILES / "data").glob("*.toml"):
        text = file.read_text()
        names |= {file.stem} if "\nbase = true\n" not in text else set()
        [aliases] = re.findall(r"^aliases = \[(.*)\]$", text, re.MULTILINE) or [""]
        names |= set(re.findall(r"[\w.-]+", aliases))
    assert sorted(typing.get_args(types.ProfileName)) == sorted(names)


@pytest.mark.parametrize("name", typing.get_args(types.ProfileName))
def test_each_named_profile_is_one(name):
    with mimus.Client(profile=name):
        pass


def test_each_kind_is_named():
    names = names_in(PROFILES / "schema.rs", r"const KINDS: [^=]*= \[(.*?)\];")
    assert sorted(typing.get_args(types.Kind)) == sorted(names)


@pytest.mark.parametrize("options", [types.RequestOptions, types.AsyncRequestOptions])
def test_each_argument_of_a_call_is_typed(options):
    arguments = names_in(ARGUMENTS / "mod.rs", r"struct CallArgs \{(.*?)\}")
    assert sorted(options.__annotations__) == sorted(arguments)
    assert not options.__required_keys__


@pytest.mark.parametrize(
    ("client", "options"),
    [(mimus.Client, types.ClientOptions), (mimus.AsyncClient, types.AsyncClientOptions)],
)
def test_each_argument_of_a_client_is_typed(client, options):
    assert sorted(options.__annotations__) == sorted(inspect.signature(client).parameters)
    assert not options.__required_keys__


@pytest.mark.parametrize(
    ("call", "stream"),
    [(types.RequestOptions, types.StreamOptions), (types.AsyncRequestOptions, types.AsyncStreamOptions)],
)
def test_stream_has_no_argument_of_its_name(call, stream):
    assert set(call.__annotations__) - set(stream.__annotations__) == {"stream"}


def test_sessions_take_each_argument_that_is_typed():
    with mimus.Client() as client:
        for name in types.EventOptions.__annotations__:
            client.sse("http://127.0.0.1/", **{name: None})
        for name in types.WebSocketOptions.__annotations__:
            # Nothing is sent, for the URL is none.
            with pytest.raises(mimus.RequestError):
                client.websocket("gopher://127.0.0.1/", **{name: None})
    rest = set(types.AsyncEventOptions.__annotations__) - set(types.AsyncStreamOptions.__annotations__)
    assert rest == set(types.EventOptions.__annotations__) - set(types.RequestOptions.__annotations__)


def test_headers_have_what_a_mutable_mapping_has():
    headers = mimus.Headers([("A", "1"), ("a", "2"), ("B", "3")])
    assert headers.pop("A") == "1, 2"
    assert headers.pop("A", None) is None
    assert headers.setdefault("C", "4") == "4"
    headers.update({"b": "5"}, D="6")
    assert headers.pairs() == [("b", "5"), ("C", "4"), ("D", "6")]
    assert headers.popitem() == ("b", "5")
    headers.clear()
    assert len(headers) == 0


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "python" / "mimus" / "py.typed").exists()
