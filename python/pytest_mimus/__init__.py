"""The pytest plugin of Mimus. It stands beside the package, which is imported when a fixture is used and not before.

The fixture `mimus_mock` is a `mimus.testing.Router` that answers all calls of a test: no socket is opened. What no
route is for fails, and so does the test if a route was not called. The marker of its name says otherwise:

    @pytest.mark.mimus_mock(base_url="https://example.com", assert_all_called=False)
    def test_user(mimus_mock):
        mimus_mock.get("/user").respond(json={"name": "wren"})
"""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mimus.testing import Router

_FAILED = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known."""
    about = "mimus_mock(**options): arguments of mimus.testing.Router for the fixture mimus_mock"
    config.addinivalue_line("markers", about)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remembers which tests failed."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.fixture
def mimus_mock(request: pytest.FixtureRequest) -> "Iterator[Router]":
    """A router that answers all calls of the test, of clients that have no transport of their own."""
    from mimus.testing import Router

    options: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("mimus_mock"))):
        if marker.args:
            pytest.fail("the marker mimus_mock takes keyword arguments alone", pytrace=False)
        options.update(marker.kwargs)
    router = Router(**options)
    router.start()
    try:
        yield router
    finally:
        router.stop()
    # A test that failed has said what matters.
    if not request.node.stash.get(_FAILED, False):
        router.check()
