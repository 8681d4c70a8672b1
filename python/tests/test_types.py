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
    source = PROFILES / "data.rs"
    files = set(names_in(source, r"\nfiles! \{(.*?)\n\}"))
    assert files == {file.stem for file in (PROFILES / "data").glob("*.toml")}
    aliases = names_in(source, r"const ALIASES: [^=]*= &\[(.*?)\];")[::2]
    names = files - set(names_in(source, r"const BASES: [^=]*= &\[(.*?)\];")) | set(aliases)
    assert sorted(typing.get_args(types.ProfileName)) == sorted(names)


@pytest.mark.parametrize("name", typing.get_args(types.ProfileName))
def test_each_named_profile_is_one(name):
    with mimus.Client(profile=name):
        pass


def test_each_kind_is_named():
    names = names_in(PROFILES / "kind.rs", r"const NAMES: [^=]*= \[(.*?)\];")
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


def test_stream_has_no_argument_of_its_name():
    rest = set(types.AsyncRequestOptions.__annotations__) - set(types.AsyncStreamOptions.__annotations__)
    assert rest == {"stream"}


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
