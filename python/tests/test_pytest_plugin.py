"""The pytest plugin, in pytest runs of their own."""

import os
import sys

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture
def run(pytester):
    def run(source, *arguments):
        pytester.makepyfile(source)
        # In a process of its own: what is imported there is looked at.
        given = ["-p", "pytest_mimus", "-p", "no:cacheprovider", *arguments]
        return pytester.runpytest_subprocess(*given)

    return run


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))


def test_the_fixture_answers_all_calls(run):
    result = run(
        """
        import mimus

        CLIENT = mimus.Client()

        def test_answered(mimus_mock):
            mimus_mock.get("https://example.com/").respond(json={"a": 1})
            assert mimus.get("https://example.com/").json() == {"a": 1}
            assert CLIENT.get("https://example.com/").json() == {"a": 1}
            assert mimus_mock.call_count == 2

        def test_nothing_is_left_of_it(mimus_mock):
            assert not mimus_mock.routes
        """
    )
    result.assert_outcomes(passed=2)


def test_what_was_not_called_or_not_matched_fails(run):
    result = run(
        """
        import mimus

        def test_unmatched(mimus_mock):
            mimus.get("https://example.com/secret")

        def test_unmatched_and_caught(mimus_mock):
            try:
                mimus.get("https://example.com/caught")
            except AssertionError:
                pass

        def test_not_called(mimus_mock):
            mimus_mock.get("https://example.com/missed")

        def test_fails_for_its_own_reason(mimus_mock):
            mimus_mock.get("https://example.com/irrelevant")
            assert False
        """
    )
    result.assert_outcomes(passed=2, failed=2, errors=2)
    result.stdout.fnmatch_lines_random(
        [
            "*no route is for GET https://example.com/secret: there is none at all",
            "*no route was for",
            "*GET https://example.com/caught",
            "*nobody called",
            "*GET https://example.com/missed",
        ]
    )


def test_the_marker_has_options(run):
    result = run(
        """
        import mimus, pytest

        pytestmark = pytest.mark.mimus_mock(assert_all_called=False, assert_all_matched=False)

        @pytest.mark.mimus_mock(base_url="https://example.com/v1")
        def test_marked(mimus_mock):
            mimus_mock.get("/missed")
            mimus_mock.get("/user").respond(204)
            assert mimus.get("https://example.com/v1/user").status == 204
            with pytest.raises(AssertionError):
                mimus.get("https://example.com/")

        @pytest.mark.mimus_mock("https://example.com")
        def test_wrongly_marked(mimus_mock):
            pass
        """,
        "--strict-markers",
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*the marker mimus_mock takes keyword arguments alone*"])


def test_the_extension_is_imported_with_the_fixture(run):
    result = run(
        """
        import sys

        def test_not_yet():
            assert "mimus" not in sys.modules

        def test_now(mimus_mock):
            assert "mimus._mimus" in sys.modules
        """
    )
    result.assert_outcomes(passed=2)
