"""Server-sent events: of one response, and of a source that connects again. Both clients, unless said."""

import asyncio
import contextlib
import pickle
import threading

import pytest

import mimus
from blocking import Blocking


def run(main):
    return asyncio.run(main())


class BlockingEvents(Blocking):
    def sse(self, url, **options):
        return Source(self.client.sse(url, **options))

    @contextlib.asynccontextmanager
    async def stream(self, method, url, **options):
        with self.client.request(method, url, stream=True, **options) as response:
            yield Response(response)


class Wrapped:
    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)


class Source(Wrapped):
    async def __aenter__(self):
        self._inner.__enter__()
        return self

    async def __aexit__(self, *error):
        self._inner.__exit__(*error)

    async def __aiter__(self):
        for event in self._inner:
            yield event

    async def aclose(self):
        self._inner.close()


class Response(Wrapped):
    async def aiter_events(self):
        for event in self._inner.iter_events():
            yield event

    async def aread(self):
        return self._inner.content


@pytest.fixture(params=[BlockingEvents, mimus.AsyncClient], ids=["sync", "async"])
def make(request, origin):
    """Makes a client of either kind that trusts the origin."""
    return lambda **options: request.param(verify=str(origin.ca), **options)


def test_events_of_a_source(make, origin):
    async def main():
        async with make() as client:
            source = client.sse(origin.http + "/sse?total=3&ms=0&retry=20")
            seen = [event async for event in source]
            assert [event.event for event in seen] == ["tick"] * 3
            assert [event.data for event in seen] == [f'{{"n": {n}}}\nsecond line' for n in range(3)]
            assert [event.id for event in seen] == ["0", "1", "2"]
            assert [event.retry for event in seen] == [20] * 3
            assert "tick" in repr(seen[0])
            # One stream, and the 204 behind its end.
            assert (source.last_event_id, source.connections, source.closed) == ("2", 1, True)
            assert [event async for event in source] == []

    run(main)


def test_a_lost_connection_goes_on_behind_the_last_event(make, origin):
    async def main():
        async with make() as client:
            source = client.sse(origin.http + "/sse?total=7&cut=2&ms=0&retry=1")
            assert [event.id async for event in source] == [str(n) for n in range(7)]
            assert source.connections == 4

    run(main)


def test_begins_behind_an_event(make, origin):
    async def main():
        async with make() as client:
            source = client.sse(origin.http + "/sse?total=5&ms=0", last_event_id="2")
            assert source.last_event_id == "2"
            assert [event.id async for event in source] == ["3", "4"]

    run(main)


def test_connects_once_where_that_is_wanted(make, origin):
    async def main():
        async with make() as client:
            source = client.sse(origin.http + "/sse?count=3&ms=0&retry=1", reconnect=False)
            assert [event.id async for event in source] == ["0", "1", "2"]
            source = client.sse(origin.http + "/sse?total=9&cut=1&ms=0&retry=1", reconnect=False)
            seen = []
            with pytest.raises(mimus.ConnectionLost):
                async for event in source:
                    seen.append(event.id)
            assert seen == ["0"]

    run(main)


def test_a_policy_ends_the_attempts(make, origin):
    async def main():
        async with make() as client:
            policy = mimus.Reconnect(retry=0.01, max_backoff=0.01, max_failures=2, from_start=True)
            with pytest.raises(mimus.ConnectError):
                [event async for event in client.sse(origin.url("/sse", "refused"), reconnect=policy)]
        with pytest.raises(ValueError):
            mimus.Reconnect(retry=-1)
        with pytest.raises(TypeError):
            mimus.Client().sse("http://127.0.0.1/", reconnect="yes")

    run(main)


@pytest.mark.parametrize(("query", "status"), [("status=503", 503), ("type=text/html", 200)])
def test_an_answer_that_is_no_stream_is_told(make, origin, query, status):
    async def main():
        async with make() as client:
            source = client.sse(f"{origin.http}/sse?{query}")
            with pytest.raises(mimus.NotEventStream) as refused:
                [event async for event in source]
            error = refused.value
            assert isinstance(error, mimus.StatusError)
            assert (error.status, error.response) == (status, None)
            assert b"no stream here" in error.content
            assert error.headers["Content-Type"]
            assert source.closed
            async with client.stream("GET", f"{origin.http}/sse?{query}") as response:
                with pytest.raises(mimus.NotEventStream) as refused:
                    [event async for event in response.aiter_events()]
                assert refused.value.status == status
                assert b"no stream here" in await response.aread()

    run(main)


def test_the_answer_of_a_model(make, origin):
    async def main():
        asked = {"stream": True, "messages": [{"role": "user", "content": "say it back"}]}
        url = origin.http + "/v1/chat/completions"

        async def said(events):
            text = ""
            async for event in events:
                if event.data == "[DONE]":
                    break
                text += event.json()["choices"][0]["delta"].get("content", "")
            return text

        async with make() as client:
            assert await said(client.sse(url, json=asked)) == "say it back"
            for _ in range(2):
                async with client.stream("POST", url, json=asked) as response:
                    assert await said(response.aiter_events()) == "say it back"
            async with client.stream("POST", origin.http + "/v1/messages", json=asked) as response:
                kinds = [event.event async for event in response.aiter_events()]
                assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
                # The connection outlived the break at [DONE].
                assert response.reused

    run(main)


@pytest.mark.parametrize("query", ["split=1", "split=7", "ends=cr", "ends=crlf&split=3"])
def test_however_it_drips(make, origin, query):
    async def main():
        async with make() as client:
            async with client.stream("GET", f"{origin.http}/sse?count=5&ms=1&{query}") as response:
                seen = [event async for event in response.aiter_events()]
            assert [(event.id, event.json) is not None for event in seen] == [True] * 5
            assert [event.id for event in seen] == [str(n) for n in range(5)]
            assert {event.retry for event in seen} == {50}
            source = client.sse(f"{origin.http}/sse?total=5&ms=1&{query}")
            assert [event.id async for event in source] == [str(n) for n in range(5)]

    run(main)


def test_a_body_that_was_read_has_its_events_still(client, origin):
    response = client.get(origin.http + "/sse?count=2&ms=0")
    for _ in range(2):
        assert [event.id for event in response.iter_events()] == ["0", "1"]

    async def main():
        async with mimus.AsyncClient() as client:
            response = await client.get(origin.http + "/sse?count=2&ms=0")
            assert [event.id async for event in response.aiter_events()] == ["0", "1"]

    run(main)


def test_an_event_that_is_too_long_is_refused(make, origin):
    async def main():
        async with make() as client:
            with pytest.raises(mimus.LimitExceeded):
                [event async for event in client.sse(origin.http + "/sse?total=1&ms=0", max_event_size=4)]

    run(main)


def test_a_stream_that_stays_silent_times_out(make, origin):
    async def main():
        async with make(timeout=mimus.Timeout(read=0.1)) as client:
            source = client.sse(origin.http + "/sse?count=2&ms=600000", reconnect=False)
            seen = []
            with pytest.raises(mimus.ReadTimeout):
                async for event in source:
                    seen.append(event.id)
            assert seen == ["0"]

    run(main)


def test_closing_ends_it(make, origin):
    async def main():
        async with make() as client:
            async with client.sse(origin.http + "/sse/every/1") as source:
                async for event in source:
                    if event.json()["n"] == 3:
                        break
                assert not source.closed
            assert source.closed
            assert [event async for event in source] == []
            await source.aclose()

    run(main)


def test_another_thread_may_close_it(client, origin):
    source = client.sse(origin.http + "/sse?count=2&ms=600000")
    begun, seen = threading.Event(), []

    def read():
        for event in source:
            seen.append(event.id)
            begun.set()

    reader = threading.Thread(target=read)
    reader.start()
    assert begun.wait(60)
    source.close()
    reader.join(60)
    assert not reader.is_alive()
    assert seen == ["0"]


def test_cancelling_a_wait_loses_no_event(origin):
    async def main():
        async with mimus.AsyncClient() as client, client.sse(origin.http + "/sse?total=40&ms=2") as source:
            seen = []
            while len(seen) < 40:
                try:
                    seen.append((await asyncio.wait_for(anext(source), 0.003)).id)
                except TimeoutError:
                    pass
            assert seen == [str(n) for n in range(40)]

    run(main)


def test_two_tasks_do_not_read_at_a_time(origin):
    async def main():
        async with mimus.AsyncClient() as client:
            source = client.sse(origin.http + "/sse?count=1&ms=600000")
            assert (await anext(source)).id == "0"
            first = asyncio.ensure_future(anext(source))
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="reads"):
                await anext(source)
            await source.aclose()
            with pytest.raises(StopAsyncIteration):
                await first

    run(main)


def test_the_method_and_the_rest_of_a_call(client, origin):
    with pytest.raises(mimus.NotEventStream) as refused:
        next(client.sse(origin.http + "/anything", content=b"x", headers={"X-One": "1"}))
    assert b'"POST"' in refused.value.content
    with pytest.raises(mimus.NotEventStream) as refused:
        next(client.sse(origin.http + "/anything", method="put", content=b"x"))
    assert b'"PUT"' in refused.value.content
    with pytest.raises(mimus.NotEventStream) as refused:
        next(client.sse(origin.http + "/anything", params={"q": "7"}))
    assert b'"GET"' in refused.value.content
    assert b"text/event-stream" in refused.value.content
    for name in ("stream", "colour"):
        with pytest.raises(TypeError, match=name):
            client.sse(origin.http + "/sse", **{name: True})


def test_a_function_of_the_module(origin):
    # A connection that is nobody else's: others count those of the client that functions share.
    with mimus.sse(origin.https + "/sse?total=2&ms=0", verify=str(origin.ca)) as source:
        assert [event.id for event in source] == ["0", "1"]
        with pytest.raises(TypeError):
            pickle.dumps(source)
