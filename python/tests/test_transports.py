"""Code that answers in the place of servers: `transport=`, and `mimus.testing`."""

import asyncio
import contextvars
import gc
import gzip
import re
import threading
import weakref

import pytest

import mimus
from mimus.testing import MockTransport, Request, Response, Router, UnmatchedRequest

URL = "https://example.com/"


def of_handler(handler, **options):
    return mimus.Client(transport=handler, **options)


def run(coroutine):
    return asyncio.run(coroutine)


class TestTransport:
    def test_a_request_comes_as_it_would_be_sent(self):
        transport = MockTransport(lambda request: Response(201, text="made", headers=[("X-A", "1"), ("x-a", "2")]))
        with mimus.Client(transport=transport, headers={"X-Own": "1"}, auth=("me", "secret")) as client:
            response = client.post("http://example.com:81/a b?c=d#e", json={"f": 1}, params={"g": "h"})
        assert (response.status, response.text, response.http_version) == (201, "made", "HTTP/1.1")
        assert response.headers.pairs() == [
            ("X-A", "1"),
            ("x-a", "2"),
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Length", "4"),
        ]
        assert (response.remote_addr, response.reused, response.tls) == (None, False, None)
        [exchange] = transport.calls
        request = exchange.request
        assert (request.method, request.url) == ("POST", "http://example.com:81/a%20b?c=d&g=h#e")
        assert (request.host, request.path, request.params) == ("example.com", "/a%20b", [("c", "d"), ("g", "h")])
        assert request.headers["host"] == "example.com:81"
        assert request.headers["authorization"].startswith("Basic ")
        assert (request.headers["x-own"], request.headers["content-length"]) == ("1", "7")
        assert (request.json(), request.content, request.http_version) == ({"f": 1}, b'{"f":1}', "HTTP/1.1")
        assert exchange.response.status == 201
        assert "POST" in repr(exchange)

    def test_redirects_are_followed_and_cookies_kept(self):
        def answer(request):
            if request.path == "/old":
                return Response(308, headers={"Location": "/new", "Set-Cookie": "a=b"})
            return Response(json={"body": request.text, "cookie": request.headers.get("cookie")})

        with of_handler(answer) as client:
            response = client.post(URL + "old", content="again")
        assert response.json() == {"body": "again", "cookie": "a=b"}
        assert (response.url, [hop.status for hop in response.history]) == (URL + "new", [308])

    def test_a_failure_to_connect_is_retried_and_raised_as_it_is(self):
        failure = mimus.ConnectError("not today")
        attempts = []

        def answer(request):
            attempts.append(request)
            if len(attempts) < 3:
                raise failure
            return Response(204)

        with of_handler(answer, retries=mimus.Retry(2, backoff=0)) as client:
            assert client.post(URL, content=b"x").status == 204
            attempts.clear()
            with pytest.raises(mimus.ConnectError) as caught:
                client.post(URL, retries=1)
        assert caught.value is failure
        assert (failure.kind, failure.phase, failure.url) == ("connect", "connect", URL)
        assert not failure.was_sent
        assert failure.is_retryable

    @pytest.mark.parametrize(
        ("failure", "phase", "sent"),
        [
            (mimus.ReadTimeout, "head", True),
            (mimus.ConnectTimeout, "connect", False),
            (mimus.PoolTimeout, "pool", False),
            (mimus.CertificateError, "tls", False),
            (mimus.ConnectionLost, "head", True),
            (mimus.ProtocolError, "head", True),
        ],
    )
    def test_failures_of_the_package_know_where_they_were(self, failure, phase, sent):
        def answer(_):
            raise failure("said so")

        with of_handler(answer) as client, pytest.raises(failure, match="said so") as caught:
            client.get(URL)
        assert type(caught.value) is failure
        assert (caught.value.phase, caught.value.was_sent, caught.value.url) == (phase, sent, URL)

    def test_what_a_handler_raises_comes_out(self):
        def answer(_):
            raise LookupError("mine")

        with of_handler(answer, retries=3) as client, pytest.raises(LookupError, match="mine"):
            client.get(URL)

    def test_an_upload_is_read_and_its_errors_come_out(self):
        def pieces(fail):
            yield b"a"
            yield "b"
            if fail:
                raise LookupError("no more")

        with of_handler(lambda request: Response(content=request.content + b"!")) as client:
            assert client.post(URL, content=pieces(False)).content == b"ab!"
            with pytest.raises(LookupError, match="no more"):
                client.post(URL, content=pieces(True))

    def test_a_body_comes_in_pieces_with_trailers(self):
        def answer(_):
            return Response(content=iter([b"a", "b", b"c"]), trailers={"X-Sum": "3"}, http_version="HTTP/2")

        with of_handler(answer) as client:
            response = client.get(URL, stream=True)
            assert list(response.iter_bytes()) == [b"a", b"b", b"c"]
            assert (response.trailers["x-sum"], response.http_version) == ("3", "HTTP/2")

    def test_a_body_that_raises_breaks_off(self):
        def pieces():
            yield b"a"
            raise mimus.ConnectionLost("gone")

        with of_handler(lambda _: Response(content=pieces())) as client:
            with pytest.raises(mimus.ConnectionLost, match="gone"):
                client.get(URL)

    def test_a_body_is_decoded(self):
        coded = gzip.compress(b"text")
        with of_handler(lambda _: Response(content=coded, headers={"Content-Encoding": "gzip"})) as client:
            assert client.get(URL).content == b"text"
            assert client.get(URL, decode=False).content == coded

    @pytest.mark.parametrize(
        ("given", "what"),
        [
            (None, "NoneType"),
            ("text", "str"),
            (200, "int"),
        ],
    )
    def test_what_is_no_response_is_refused(self, given, what):
        with of_handler(lambda _: given) as client, pytest.raises(TypeError, match=what):
            client.get(URL)

    def test_what_is_no_transport_is_refused(self):
        for wrong in ("text", 7, MockTransport):
            with pytest.raises(TypeError, match="transport"):
                mimus.Client(transport=wrong)
        with mimus.Client(transport=None) as client:
            assert not client.is_closed

    def test_what_cannot_be_answered_is_refused(self):
        for response in (Response(101), Response(20)):
            with of_handler(lambda _, response=response: response) as client, pytest.raises(mimus.RequestError):
                client.get(URL)
        with pytest.raises(TypeError, match="give one"):
            Response(text="a", json={})

    def test_threads_share_one(self):
        with of_handler(lambda request: Response(text=request.path)) as client:
            said = {}

            def ask(n):
                said[n] = client.get(f"{URL}{n}").text

            threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert said == {n: f"/{n}" for n in range(8)}

    def test_a_coroutine_needs_a_loop(self):
        async def answer(_):
            return Response()

        with of_handler(answer) as client, pytest.raises(TypeError, match="AsyncClient"):
            client.get(URL)


class TestAwaited:
    def test_functions_and_coroutine_functions_answer(self):
        async def slowly(request):
            await asyncio.sleep(0)
            return Response(text=f"slow {request.text}")

        async def main():
            async with mimus.AsyncClient(transport=lambda request: Response(text="fast")) as client:
                assert (await client.get(URL)).text == "fast"
            transport = MockTransport(slowly)
            async with mimus.AsyncClient(transport=transport) as client:
                answers = await asyncio.gather(*(client.post(URL, content=str(n)) for n in range(20)))
                assert [answer.text for answer in answers] == [f"slow {n}" for n in range(20)]
            assert transport.call_count == 20
            assert all(exchange.response.status == 200 for exchange in transport.calls)

        run(main())

    def test_bodies_are_async_iterables(self):
        async def pieces(*given):
            for piece in given:
                await asyncio.sleep(0)
                yield piece

        async def main():
            def answer(request):
                return Response(content=pieces(b"<", request.content, b">"))

            async with mimus.AsyncClient(transport=answer) as client:
                async with client.stream("POST", URL, content=pieces(b"a", "b")) as response:
                    assert [piece async for piece in response] == [b"<", b"ab", b">"]

        run(main())

    def test_timeouts_fire_and_cancel_the_handler(self):
        async def main():
            cancelled = asyncio.Event()

            async def never(_):
                try:
                    await asyncio.Event().wait()
                finally:
                    cancelled.set()

            async with mimus.AsyncClient(transport=never, timeout=mimus.Timeout(read=0.05)) as client:
                with pytest.raises(mimus.ReadTimeout):
                    await client.get(URL)
                await asyncio.wait_for(cancelled.wait(), 10)
                cancelled.clear()
                task = asyncio.create_task(client.get(URL, timeout=None))
                while len(asyncio.all_tasks()) < 3:
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await asyncio.wait_for(cancelled.wait(), 10)

        run(main())

    def test_what_it_raises_comes_out(self):
        async def main():
            async def answer(request):
                await asyncio.sleep(0)
                raise {"/own": LookupError, "/lost": mimus.ConnectionLost}[request.path]("said so")

            async with mimus.AsyncClient(transport=answer) as client:
                with pytest.raises(LookupError, match="said so"):
                    await client.get(URL + "own")
                with pytest.raises(mimus.ConnectionLost, match="said so") as caught:
                    await client.get(URL + "lost")
                assert caught.value.phase == "head"

        run(main())

    def test_it_sees_the_context_of_the_call(self):
        var = contextvars.ContextVar("var", default="none")

        async def answer(_):
            return Response(text=var.get())

        async def main():
            async with mimus.AsyncClient(transport=answer) as client:
                var.set("mine")
                assert (await client.get(URL)).text == "mine"

        run(main())


class TestRouter:
    def test_it_answers_every_client_while_it_is_entered(self, origin):
        client = mimus.Client(verify=str(origin.ca))
        with Router() as server:
            user = server.get(URL).respond(json={"name": "wren"})
            assert mimus.get(URL).json() == {"name": "wren"}
            assert client.get(URL).json() == {"name": "wren"}

            async def main():
                async with mimus.AsyncClient() as client:
                    return (await client.get(URL)).json()

            assert run(main()) == {"name": "wren"}
            own = mimus.Client(transport=lambda _: Response(text="its own"))
            assert own.get(URL).text == "its own"
            assert user.call_count == server.call_count == 3
        # The servers are there again.
        assert client.get(origin.url("/get")).json()["method"] == "GET"

    def test_routers_nest(self):
        with Router() as outer, Router() as inner:
            outer.get(URL).respond(text="outer").optional()
            inner.get(URL).respond(text="inner")
            assert mimus.get(URL).text == "inner"
            inner.stop()
            outer.routes[0].reset()
            assert mimus.get(URL).text == "outer"
            inner.start()

    def test_answers_take_turns_and_the_last_stays(self):
        with Router() as server:
            route = server.get(URL).respond(503).raises(mimus.ConnectionLost("gone")).respond(200, text="at last")
            assert mimus.get(URL).status == 503
            with pytest.raises(mimus.ConnectionLost, match="gone"):
                mimus.get(URL)
            assert [mimus.get(URL).text for _ in range(2)] == ["at last"] * 2
            route.assert_called(4)
            assert [type(call.error) for call in route.calls[:3]] == [type(None), mimus.ConnectionLost, type(None)]
            assert [call.response.status for call in (route.calls[0], route.calls[2])] == [503, 200]
            route.reset()
            assert mimus.get(URL).status == 503
            with pytest.raises(AssertionError, match="1 times, not 2"):
                route.assert_called(2)
            route.assert_called_once()

    def test_retries_meet_one_answer_after_the_other(self):
        with Router() as server:
            route = server.get(URL).raises(mimus.ConnectError).respond(503).respond(204)
            with mimus.Client(retries=mimus.Retry(3, backoff=0)) as client:
                assert client.get(URL).status == 204
            route.assert_called(3)

    @pytest.mark.parametrize(
        ("route", "call"),
        [
            ({"url": "https://EXAMPLE.com:443"}, {}),
            ({"url": "https://example.com/#part"}, {"url": URL + "?any=thing"}),
            ({"url": URL + "a b?c=d e"}, {"url": URL + "a b?x=y&c=d+e"}),
            ({"url": URL + "ä"}, {"url": URL + "ä"}),
            ({"url": "https://bücher.example/"}, {"url": "https://bücher.example/"}),
            ({"url": re.compile(r"https://example\.com/users/\d+$")}, {"url": URL + "users/7"}),
            ({"url": "/relative"}, {"url": URL + "relative"}),
            ({"params": {"a": [1, 2], "b": True}}, {"url": URL + "?a=2&a=1&b=true"}),
            ({"headers": {"X-One": "1"}}, {"headers": [("x-one", "0"), ("x-one", "1")]}),
            ({"content": "text"}, {"content": "text"}),
            ({"json": {"a": [1, None]}}, {"json": {"a": [1, None]}}),
            ({"form": {"a": "b c"}}, {"data": {"a": "b c", "d": "e"}}),
            ({"where": lambda request: request.headers["x"] == "y"}, {"headers": {"X": "y"}}),
            ({"method": "put"}, {"method": "PUT"}),
            ({}, {}),
        ],
    )
    def test_a_route_fits(self, route, call):
        with Router("https://example.com") as server:
            server.route(**route).respond(204)
            assert mimus.request(**({"method": "POST", "url": URL} | call)).status == 204

    @pytest.mark.parametrize(
        ("route", "why"),
        [
            ({"method": "GET", "url": URL}, "the method is POST"),
            ({"url": URL + "b"}, "the URL is https://example.com/a"),
            ({"url": "http://example.com/a"}, "the URL is https://example.com/a"),
            ({"url": re.compile("http:")}, "the URL is https://example.com/a\\?c=d"),
            ({"url": URL + "a?e=f"}, "there is no parameter 'e'"),
            ({"params": {"c": ["d", "d"]}}, "the parameter 'c' is 'd'"),
            ({"headers": {"X": "y"}}, "the field 'X' is None"),
            ({"content": b"text"}, "the body is b'{\"g\":\"h\"}'"),
            ({"json": {"g": "i"}}, "the body is b'{\"g\":\"h\"}'"),
            ({"form": {"g": "h"}}, "there is no field of the form 'g'"),
            ({"where": lambda request: False}, "says no"),
        ],
    )
    def test_what_fits_no_route_is_explained(self, route, why):
        with Router(assert_all_called=False, assert_all_matched=False) as server:
            server.route(**route)
            with pytest.raises(UnmatchedRequest, match=why) as caught:
                mimus.post(URL + "a", params={"c": "d"}, json={"g": "h"})
            assert f"no route is for POST {URL}a?c=d" in str(caught.value)
            assert caught.value.request.json() == {"g": "h"}

    def test_the_nearest_routes_are_named(self):
        with Router(assert_all_called=False, assert_all_matched=False) as server:
            with pytest.raises(UnmatchedRequest, match="there is none at all"):
                mimus.get(URL)
            for path in ("one", "two", "three", "users", "four"):
                server.post(URL + path)
            server.get(URL + "user")
            with pytest.raises(UnmatchedRequest) as caught:
                mimus.get(URL + "users")
            lines = str(caught.value).splitlines()
            assert len(lines) == 5
            assert {line.strip().partition(":  ")[0].partition(": the")[0] for line in lines[1:3]} == {
                f"GET {URL}user",
                f"POST {URL}users",
            }
            assert lines[4] == "  and 3 more"

    def test_leaving_it_fails_for_what_was_not_called_or_not_matched(self):
        with pytest.raises(AssertionError, match=f"nobody called\n  GET {URL}b"):
            with Router() as server:
                server.get(URL + "a")
                server.get(URL + "b")
                server.get(URL + "c").optional()
                mimus.get(URL + "a")
        with pytest.raises(UnmatchedRequest, match=f"no route was for\n  GET {URL}"):
            with Router():
                try:
                    mimus.get(URL)
                except AssertionError:
                    pass
        with pytest.raises(LookupError), Router() as server:
            server.get(URL)
            raise LookupError

    def test_the_same_route_is_the_same(self):
        server = Router("https://example.com/v1")
        route = server.get("/users", params={"a": "b"})
        assert server.get("https://example.com/v1/users?a=b") is route
        assert server.get("/users") is not route
        assert len(server.routes) == 2
        with pytest.raises(ValueError, match="base_url"):
            Router().get("/users")

    def test_some_go_to_their_server(self, origin):
        with Router(pass_through=[origin.http]) as server, mimus.Client() as client:
            elsewhere = server.get(URL).respond(text="there")
            assert client.get(origin.url("/get")).json()["method"] == "GET"
            # Each exchange is asked about.
            assert client.get(origin.url("/redirect-to"), params={"url": URL}).text == "there"
            elsewhere.assert_called_once()
            assert server.call_count == 1

    def test_handlers_and_coroutines_answer(self):
        async def main():
            async def answer(request):
                await asyncio.sleep(0)
                return Response(text=request.path)

            async with Router() as server:
                route = server.route().handle(answer)
                async with mimus.AsyncClient() as client:
                    assert (await client.get(URL + "path")).text == "/path"
                [exchange] = route.calls
                assert (exchange.response.status, exchange.error) == (200, None)

        run(main())

    def test_requests_and_httpx_are_answered(self):
        from mimus import requests

        with Router() as server:
            server.get(URL).respond(json={"a": 1}, headers=[("Set-Cookie", "a=b"), ("Set-Cookie", "c=d")])
            server.get(URL + "refused").raises(mimus.ConnectError)
            server.get(URL + "slow").raises(mimus.ReadTimeout)
            with requests.Session() as session:
                response = session.get(URL)
                assert (response.json(), session.cookies.get_dict()) == ({"a": 1}, {"a": "b", "c": "d"})
                with pytest.raises(requests.exceptions.ConnectionError):
                    session.get(URL + "refused")
                with pytest.raises(requests.exceptions.ReadTimeout):
                    session.get(URL + "slow")
            httpx = pytest.importorskip("httpx")
            from mimus.httpx import Transport

            with httpx.Client(transport=Transport()) as client:
                assert client.get(URL).json() == {"a": 1}
                with pytest.raises(httpx.ConnectError):
                    client.get(URL + "refused")
                with pytest.raises(httpx.ReadTimeout):
                    client.get(URL + "slow")

    def test_nothing_is_kept(self):
        class Held:
            pass

        held = Held()
        gone = []
        weakref.finalize(held, gone.append, True)
        with of_handler(lambda _, held=held: Response()) as client:
            client.get(URL)
        del client, held
        gc.collect()
        assert gone == [True]


def test_a_request_says_what_it_is():
    request = Request("POST", "https://example.com/a?b=c&b=", content=b"d=e+f")
    assert (request.params, request.form) == ([("b", "c"), ("b", "")], [("d", "e f")])
    assert repr(request) == "<Request POST https://example.com/a?b=c&b=>"
    assert repr(Response(404)) == "<Response 404>"
