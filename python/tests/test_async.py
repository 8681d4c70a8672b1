"""AsyncClient: what is asked, what is answered, and how bodies go both ways."""

import asyncio
import collections.abc
import contextvars
import gzip
import io
import json
import os

import pytest

import mimus


def run(main):
    return asyncio.run(main())


def test_status_headers_and_body(origin):
    async def main():
        async with mimus.AsyncClient() as client:
            response = await client.get(origin.http + "/response-headers?X-A=1&X-A=2", params={"X-B": "3"})
            assert isinstance(response, mimus.AsyncResponse)
            assert (response.status, response.status_code, response.http_version) == (200, 200, "HTTP/1.1")
            assert response.headers["x-a"] == "1, 2"
            assert response.headers["X-B"] == "3"
            missing = await client.get(origin.http + "/status/404")
            assert missing.status == 404
            with pytest.raises(mimus.StatusError):
                missing.raise_for_status()

    run(main)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "brotli", "zstd"])
def test_decodes(origin, coding):
    async def main():
        async with mimus.AsyncClient() as client:
            response = await client.get(f"{origin.http}/{coding}")
            assert response.json()
            raw = await client.get(f"{origin.http}/{coding}", decode=False)
            assert raw.content != response.content
            if coding == "gzip":
                assert json.loads(gzip.decompress(raw.content))["coded"] == "gzip"

    run(main)


@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete", "options"])
def test_methods(origin, method):
    async def main():
        async with mimus.AsyncClient() as client:
            response = await getattr(client, method)(origin.http + "/anything")
            assert response.json()["method"] == method.upper()
            response = await client.request("BREW", origin.http + "/anything")
            assert response.json()["method"] == "BREW"
            assert (await client.head(origin.http + "/get")).content == b""

    run(main)


def test_sequential_calls_share_one_connection(origin):
    async def main():
        async with mimus.AsyncClient() as client:
            answers = [(await client.get(origin.http + "/get")).json() for _ in range(20)]
            assert len({answer["connection"] for answer in answers}) == 1
            assert [answer["request_number"] for answer in answers] == list(range(1, 21))

    run(main)


def test_concurrent_calls_over_http1(origin):
    async def main():
        async with mimus.AsyncClient(limits=mimus.Limits(max_connections_per_host=8)) as client:
            answers = await asyncio.gather(*[client.get(f"{origin.http}/get?n={n}") for n in range(100)])
            assert [answer.json()["args"]["n"] for answer in answers] == [str(n) for n in range(100)]
            assert len({answer.json()["connection"] for answer in answers}) <= 8

    run(main)


@pytest.mark.parametrize("port", ["h2c", "tls-h2"])
def test_a_hundred_calls_share_one_http2_connection(origin, port):
    async def main():
        tls = port.startswith("tls")
        version = {} if tls else {"http_version": "h2c"}
        base = f"{'https' if tls else 'http'}://{origin.ports[port]}"
        async with mimus.AsyncClient(verify=str(origin.ca), **version) as client:
            answers = await asyncio.gather(*[client.get(f"{base}/get?n={n}") for n in range(100)])
            assert {answer.http_version for answer in answers} == {"HTTP/2"}
            assert [answer.json()["args"]["n"] for answer in answers] == [str(n) for n in range(100)]
            assert len({answer.local_addr for answer in answers}) == 1
            again = await client.get(f"{base}/get")
            assert again.reused and again.local_addr == answers[0].local_addr

    run(main)


def test_tls(origin):
    async def main():
        async with mimus.AsyncClient(verify=str(origin.ca)) as client:
            first = await client.get(origin.https + "/get")
            second = await client.get(origin.https + "/bytes/300000")
            assert first.tls is not None and second.reused
            assert len(second.content) == 300000
        async with mimus.AsyncClient() as client:
            with pytest.raises(mimus.CertificateError):
                await client.get(origin.https + "/get")

    run(main)


@pytest.mark.parametrize("size", [0, 1, 100_000, 5_000_000])
def test_bodies_of_all_sizes_come_whole(origin, size):
    async def main():
        async with mimus.AsyncClient() as client:
            whole = await client.get(f"{origin.http}/bytes/{size}")
            assert len(whole.content) == size
            chunked = await client.get(f"{origin.http}/stream-bytes/{size}")
            assert chunked.content == whole.content
            async with client.stream("GET", f"{origin.http}/bytes/{size}") as response:
                pieces = [piece async for piece in response.aiter_bytes(70_000)]
            assert b"".join(pieces) == whole.content
            assert all(len(piece) == 70_000 for piece in pieces[:-1])

    run(main)


def test_a_call_is_a_coroutine_to_asyncio(origin):
    async def main():
        async with mimus.AsyncClient() as client:
            call = client.get(origin.http + "/get")
            assert isinstance(call, collections.abc.Coroutine)
            assert (await call).status == 200
            with pytest.raises(RuntimeError):
                await call
            assert (await asyncio.create_task(client.get(origin.http + "/get"))).status == 200
            assert (await asyncio.wait_for(client.get(origin.http + "/get"), 60)).status == 200
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(client.get(origin.http + "/get")) for _ in range(3)]
            assert [task.result().status for task in tasks] == [200] * 3

    run(main)


def test_a_call_that_is_never_awaited_warns(origin):
    async def main():
        client = mimus.AsyncClient()
        with pytest.warns(RuntimeWarning, match="'get' was never awaited"):
            client.get(origin.http + "/get")
        client.get(origin.http + "/get").close()

    run(main)


def test_outside_of_a_loop(origin):
    client = mimus.AsyncClient()
    call = client.get(origin.http + "/get")
    with pytest.raises(RuntimeError, match="no running event loop"):
        call.send(None)
    call.close()


def test_two_tasks_cannot_await_one_call(origin):
    async def main():
        async with mimus.AsyncClient() as client:
            call = client.get(origin.http + "/delay/0.1")

            async def wait():
                return await call

            outcomes = await asyncio.gather(wait(), wait(), return_exceptions=True)
            assert sorted(type(outcome).__name__ for outcome in outcomes) == ["AsyncResponse", "RuntimeError"]

    run(main)


def test_stream_returns_at_the_head(origin):
    async def main():
        async with mimus.AsyncClient() as client:
            response = await client.get(origin.http + "/drip?numbytes=3&duration=0.3", stream=True)
            assert not response.is_closed
            with pytest.raises(mimus.StreamConsumed):
                response.content
            assert await response.aread() == response.content == b"***"
            assert response.text == "***"
            assert [piece async for piece in response.aiter_bytes()] == [b"***"]

    run(main)


def test_lines_and_text(origin):
    async def main():
        async with mimus.AsyncClient() as client:
            async with client.stream("GET", origin.http + "/stream/5") as response:
                lines = [line async for line in response.aiter_lines()]
            assert len(lines) == 5 and all(isinstance(json.loads(line), dict) for line in lines)
            async with client.get(origin.http + "/encoding/shift_jis", stream=True) as response:
                pieces = [text async for text in response.aiter_text()]
            whole = await client.get(origin.http + "/encoding/shift_jis")
            assert "".join(pieces) == whole.text

    run(main)


def test_a_closed_response_gives_no_more(origin):
    async def main():
        async with mimus.AsyncClient() as client:
            async with client.stream("GET", origin.http + "/bytes/10000000") as response:
                async for _ in response.aiter_bytes():
                    break
            assert response.is_closed
            with pytest.raises(mimus.StreamConsumed):
                await response.aread()
            assert (await client.get(origin.http + "/get")).status == 200

    run(main)


def test_a_wait_for_a_piece_that_is_broken_off_loses_nothing():
    async def main():
        goes_on = asyncio.Event()

        async def serve(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
            await goes_on.wait()
            writer.write(b"body")
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server, mimus.AsyncClient() as client:
            port = server.sockets[0].getsockname()[1]
            async with client.stream("GET", f"http://127.0.0.1:{port}/") as response:
                body = response.aiter_bytes(4)
                for _ in range(3):
                    with pytest.raises(TimeoutError):
                        await asyncio.wait_for(anext(body), 0.01)
                goes_on.set()
                assert await anext(body) == b"body"
                with pytest.raises(StopAsyncIteration):
                    await anext(body)

    run(main)


def test_uploads(origin, tmp_path):
    data = os.urandom(300_000)
    path = tmp_path / "data"
    path.write_bytes(data)

    async def pieces():
        for at in range(0, len(data), 70_000):
            await asyncio.sleep(0)
            yield data[at : at + 70_000]

    async def main():
        async with mimus.AsyncClient() as client:
            with open(path, "rb") as file:
                bodies = [data, memoryview(data), io.BytesIO(data), file, path, iter([data[:7], data[7:]]), pieces()]
                for body in bodies:
                    answer = (await client.post(origin.http + "/upload", content=body)).json()
                    assert answer["length"] == len(data), body
            answer = await client.post(origin.http + "/post", json={"a": [1]})
            assert answer.json()["json"] == {"a": [1]}
            answer = await client.post(origin.http + "/post", data={"a": "ä"})
            assert answer.json()["form"] == {"a": "ä"}

    run(main)


def test_what_an_async_iterable_raises_comes_out_as_itself(origin):
    class Broken(Exception):
        pass

    async def broken():
        yield b"x"
        raise Broken("on purpose")

    async def wrong():
        yield 1

    async def main():
        async with mimus.AsyncClient() as client:
            with pytest.raises(Broken, match="on purpose"):
                await client.post(origin.http + "/post", content=broken())
            with pytest.raises(TypeError, match="int"):
                await client.post(origin.http + "/post", content=wrong())
            with pytest.raises(ZeroDivisionError):
                await client.post(origin.http + "/post", content=(1 // n for n in (0,)))
            assert (await client.get(origin.http + "/get")).status == 200
            assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main)


def test_an_async_iterable_is_left_where_the_call_is_cancelled(origin):
    left = []

    async def main():
        begun = asyncio.Event()

        async def endless():
            try:
                while True:
                    begun.set()
                    yield b"x" * 1000
                    await asyncio.sleep(0)
            finally:
                left.append(True)

        async with mimus.AsyncClient() as client:
            call = asyncio.create_task(client.post(origin.http + "/upload", content=endless()))
            await begun.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            while len(asyncio.all_tasks()) > 1:
                await asyncio.sleep(0)
            assert left == [True]

    run(main)


def test_an_async_iterable_runs_in_the_context_of_who_gave_it(origin):
    name = contextvars.ContextVar("name")

    async def pieces():
        yield name.get()

    async def main():
        async with mimus.AsyncClient() as client:
            name.set("inner")
            answer = await client.post(origin.http + "/post", content=pieces())
            assert answer.json()["data"] == "inner"

    run(main)


def test_an_upload_goes_on_behind_its_answer():
    """What is sent may depend on what is answered."""

    async def main():
        async def serve(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(3):
                await reader.readuntil(b"\r\nping\r\n")
                writer.write(b"4\r\npong\r\n")
            await reader.readuntil(b"0\r\n\r\n")
            writer.write(b"0\r\n\r\n")
            await writer.drain()
            writer.close()

        pings = asyncio.Queue()

        async def pieces():
            while ping := await pings.get():
                yield ping

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server, mimus.AsyncClient() as client:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            async with client.stream("POST", url, content=pieces()) as response:
                body = response.aiter_bytes()
                for _ in range(3):
                    pings.put_nowait(b"ping")
                    assert await anext(body) == b"pong"
                pings.put_nowait(None)
                with pytest.raises(StopAsyncIteration):
                    await anext(body)

    run(main)


def test_timeouts(origin):
    async def main():
        async with mimus.AsyncClient() as client:
            with pytest.raises(mimus.ReadTimeout) as caught:
                await client.get(origin.http + "/delay/60", timeout=mimus.Timeout(read=0.05))
            assert isinstance(caught.value, TimeoutError)
            with pytest.raises(TimeoutError):
                await client.get(origin.http + "/drip?numbytes=100&duration=60", timeout=0.1)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await client.get(origin.http + "/delay/60")
            assert (await client.get(origin.http + "/get", timeout=60)).status == 200

    run(main)


def test_names_are_looked_up_beside_the_loop(origin):
    async def main():
        port = origin.ports["http"].rpartition(":")[2]
        async with mimus.AsyncClient() as client:
            response = await client.get(f"http://localhost:{port}/get")
            assert response.status == 200
            with pytest.raises(mimus.ResolveError):
                await client.get("http://does-not-exist.invalid/")

    run(main)


def test_failures(origin):
    async def main():
        async with mimus.AsyncClient() as client:
            with pytest.raises(ConnectionError):
                await client.get(f"http://{origin.ports['refused']}/")
            with pytest.raises(mimus.Error):
                await client.get(f"http://{origin.ports['close-on-accept']}/")
            with pytest.raises(mimus.InvalidURL):
                client.get("http://[::1/")
            with pytest.raises(TypeError, match="nonsense"):
                client.get(origin.http, nonsense=1)
        with pytest.raises(RuntimeError, match="closed"):
            client.get(origin.http + "/get")

    run(main)


def test_cookies_and_redirects(origin):
    async def main():
        async with mimus.AsyncClient() as client:
            response = await client.get(origin.http + "/cookies/set?a=1")
            assert response.json()["cookies"] == {"a": "1"}
            assert [hop.status for hop in response.history] == [302]
            response = await client.get(origin.http + "/redirect/2", follow_redirects=False)
            assert response.is_redirect

    run(main)


def test_nothing_of_it_is_pickled(origin):
    import pickle

    with pytest.raises(TypeError):
        pickle.dumps(mimus.AsyncClient())


def test_hooks_may_be_awaited(origin):
    seen = []

    async def ask(request):
        await asyncio.sleep(0)
        request.headers["X-Token"] = "1"
        seen.append(request.url)

    def look(request):
        seen.append("plain")

    async def answer(response):
        await asyncio.sleep(0)
        seen.append(response.status)

    async def main():
        hooks = {"request": [ask, look], "response": answer}
        async with mimus.AsyncClient(hooks=hooks) as client:
            response = await client.get(origin.http + "/headers")
            assert "X-Token" in response.text
            async with client.stream("GET", origin.http + "/get") as response:
                await response.aread()
        assert seen == [origin.http + "/headers", "plain", 200, origin.http + "/get", "plain", 200]

    run(main)
    with pytest.raises(TypeError):
        mimus.Client(hooks={"request": ask})


def test_what_a_hook_raises_comes_out_as_itself(origin):
    class Refused(Exception):
        pass

    async def refuse(_):
        raise Refused

    async def forever(_):
        await asyncio.sleep(3600)

    async def main():
        for hooks in [{"request": refuse}, {"response": refuse}]:
            async with mimus.AsyncClient(hooks=hooks) as client:
                with pytest.raises(Refused):
                    await client.get(origin.http + "/get")
        for hooks in [{"request": forever}, {"response": forever}]:
            async with mimus.AsyncClient(hooks=hooks) as client:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await client.get(origin.http + "/get")

    run(main)


def test_raw_pieces(origin):
    async def main():
        async with mimus.AsyncClient() as client:
            async with client.stream("GET", origin.http + "/gzip") as response:
                raw = b"".join([bytes(piece) async for piece in response.aiter_raw()])
            assert json.loads(gzip.decompress(raw))["coded"] == "gzip"
            response = await client.get(origin.http + "/gzip")
            with pytest.raises(mimus.StreamConsumed):
                response.aiter_raw()

    run(main)


def test_python_codecs(origin):
    async def main():
        async with mimus.AsyncClient() as client:
            response = await client.get(origin.http + "/bytes/10")
            response.encoding = "cp037"
            assert "".join([text async for text in response.aiter_text()]) == response.content.decode("cp037")

    run(main)


def test_saving(origin, tmp_path):
    async def main():
        seen = []
        async with mimus.AsyncClient() as client:
            url = origin.http + "/bytes/3000000"
            async with client.stream("GET", url) as response:
                count = await response.asave(tmp_path / "streamed", progress=lambda *now: seen.append(now))
            assert count == 3_000_000
            assert seen[-1] == (3_000_000, 3_000_000) and len(seen) > 1
            whole = await client.get(url)
            assert await whole.asave(str(tmp_path / "whole")) == 3_000_000
            assert (tmp_path / "streamed").read_bytes() == (tmp_path / "whole").read_bytes() == whole.content
            with pytest.raises(FileNotFoundError):
                await whole.asave(tmp_path / "nowhere" / "file")

    run(main)
