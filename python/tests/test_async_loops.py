"""AsyncClient and event loops: several of them, other kinds, closed ones, cancelled calls, forks and threads."""

import asyncio
import contextvars
import gc
import os
import random
import socket
import threading
import time
import weakref

import pytest

import mimus


class CannotWatch(asyncio.SelectorEventLoop):
    """As Windows' Proactor loop, and many a loop that is driven by a toolkit."""

    def add_reader(self, fd, callback, *args):
        raise NotImplementedError

    add_writer = remove_reader = remove_writer = add_reader


def loops():
    yield pytest.param(asyncio.SelectorEventLoop, id="selector")
    yield pytest.param(CannotWatch, id="cannot-watch")
    try:
        import uvloop
    except ImportError:
        return
    yield pytest.param(uvloop.new_event_loop, id="uvloop")


@pytest.fixture(params=loops())
def make_loop(request):
    return request.param


def run(make_loop, main):
    problems = []
    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.get_loop().set_exception_handler(lambda _, context: problems.append(context))
        output = runner.run(main())
        gc.collect()
    assert not problems
    return output


def descriptors():
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def settles_at(count):
    """Whether so many descriptors are left, once those who look up names have ended."""
    for _ in range(3000):
        if descriptors() <= count:
            return True
        time.sleep(0.01)
    return False


def test_calls_work_on_any_loop(make_loop, origin):
    async def main():
        async with mimus.AsyncClient(verify=str(origin.ca)) as client:
            for url in [origin.http, origin.https, f"https://{origin.ports['tls-h2']}"]:
                answers = await asyncio.gather(*[client.get(f"{url}/get?n={n}") for n in range(30)])
                assert [answer.json()["args"]["n"] for answer in answers] == [str(n) for n in range(30)]
                whole = await client.get(f"{url}/bytes/3000000")
                assert len(whole.content) == 3_000_000
                async with client.stream("GET", f"{url}/bytes/3000000") as response:
                    assert b"".join([piece async for piece in response.aiter_bytes()]) == whole.content

            async def pieces():
                for _ in range(100):
                    await asyncio.sleep(0)
                    yield b"x" * 10_000

            answer = await client.post(origin.http + "/upload", content=pieces())
            assert answer.json()["length"] == 1_000_000
            with pytest.raises(mimus.ReadTimeout):
                await client.get(origin.http + "/delay/60", timeout=mimus.Timeout(read=0.05))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await client.get(origin.http + "/delay/60")

    run(make_loop, main)


def test_a_cancel_storm_leaves_nothing_behind(make_loop, origin):
    """A thousand calls, cancelled at random points of their lives."""
    dice = random.Random(7)

    async def pieces():
        for _ in range(3):
            await asyncio.sleep(0)
            yield b"x" * 1000

    async def one(client, urls):
        url = dice.choice(urls)
        how = dice.randrange(4)
        if how == 0:
            await client.post(url + "/post", content=pieces())
        elif how == 1:
            await client.get(url + "/bytes/200000")
        elif how == 2:
            async with client.stream("GET", url + "/stream-bytes/200000") as response:
                async for _ in response.aiter_bytes():
                    await asyncio.sleep(0)
        else:
            await client.get(url + "/get")

    async def main():
        limits = mimus.Limits(max_connections_per_host=20)
        urls = [origin.http, origin.https, f"https://{origin.ports['tls-h2']}"]
        async with mimus.AsyncClient(limits=limits, verify=str(origin.ca)) as client:
            for url in urls:
                await client.get(url + "/get")
            cancelled = 0
            for _ in range(20):
                tasks = [asyncio.create_task(one(client, urls)) for _ in range(50)]
                dice.shuffle(tasks)
                for task in tasks:
                    for _ in range(dice.randrange(4)):
                        await asyncio.sleep(0)
                    task.cancel()
                outcomes = await asyncio.gather(*tasks, return_exceptions=True)
                strange = [o for o in outcomes if o is not None and not isinstance(o, asyncio.CancelledError)]
                assert not strange
                cancelled += sum(outcome is not None for outcome in outcomes)
            assert cancelled > 0
            # The pool still grants as much as it may.
            for url in urls:
                answers = await asyncio.gather(*[client.get(url + "/get") for _ in range(60)])
                assert {answer.status for answer in answers} == {200}
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)

    run(make_loop, main)
    before = descriptors()
    run(make_loop, main)
    # The last loop of a thread is remembered, with what it is rung by.
    assert settles_at(before)


def test_cancelling_closes_the_connection_at_once(make_loop):
    """The client lives on; only the call has ended."""

    async def main():
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.setblocking(False)
            client = mimus.AsyncClient()
            call = asyncio.create_task(client.get(f"http://127.0.0.1:{server.getsockname()[1]}/"))
            while True:
                try:
                    peer, _ = server.accept()
                    break
                except BlockingIOError:
                    await asyncio.sleep(0.001)
            with peer:
                peer.settimeout(60)
                while b"\r\n\r\n" not in await loop.run_in_executor(None, peer.recv, 65536, socket.MSG_PEEK):
                    await asyncio.sleep(0.001)
                peer.recv(65536)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                assert await loop.run_in_executor(None, peer.recv, 1) == b""

    run(make_loop, main)


def test_one_client_on_one_loop_after_the_other(make_loop, origin):
    client = mimus.AsyncClient()

    async def main():
        answers = [(await client.get(origin.http + "/get")).json() for _ in range(3)]
        assert len({answer["connection"] for answer in answers}) == 1
        return answers[0]["connection"]

    connections = [run(make_loop, main) for _ in range(3)]
    if make_loop is not CannotWatch:
        assert len(set(connections)) == 3


def test_loops_and_connections_are_let_go(make_loop, origin):
    def once():
        client = mimus.AsyncClient()

        async def main():
            await asyncio.gather(*[client.get(origin.http + "/get") for _ in range(10)])
            return weakref.ref(asyncio.get_running_loop())

        return run(make_loop, main)

    refs = [once() for _ in range(3)]
    before = descriptors()
    refs += [once() for _ in range(5)]
    assert settles_at(before)
    assert [ref() for ref in refs] == [None] * len(refs)


def test_a_client_outlives_its_loop(make_loop, origin):
    """Idle connections of a closed loop are dropped with the client, from another thread too."""
    before = None
    for _ in range(4):
        client = mimus.AsyncClient()

        async def main(client=client):
            await asyncio.gather(*[client.get(origin.http + "/get") for _ in range(5)])

        loop = make_loop()
        loop.run_until_complete(main())
        loop.close()
        box = [client]
        del client, main
        thread = threading.Thread(target=box.clear)
        thread.start()
        thread.join()
        del loop
        if before is None:
            before = descriptors()
    assert settles_at(before)


def test_threads_with_a_loop_each(make_loop, origin):
    client = mimus.AsyncClient()
    failures = []

    def work():
        async def main():
            for _ in range(5):
                answers = await asyncio.gather(*[client.get(origin.http + "/get") for _ in range(10)])
                assert {answer.status for answer in answers} == {200}

        try:
            run(make_loop, main)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_limits_are_kept_across_loops(origin):
    """Who waits for a connection on one loop is woken by another's thread."""
    client = mimus.AsyncClient(limits=mimus.Limits(max_connections=2))
    failures = []

    def work():
        async def main():
            for _ in range(20):
                await asyncio.gather(*[client.get(origin.http + "/get") for _ in range(3)])

        try:
            asyncio.run(asyncio.wait_for(main(), 120))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_fork_leaves_the_parents_connections_alone(origin):
    client = mimus.AsyncClient()
    loop = asyncio.new_event_loop()
    first = loop.run_until_complete(client.get(origin.http + "/get")).json()["connection"]
    child = os.fork()
    if child == 0:
        status = 1
        try:
            own = asyncio.run(_connection(client, origin))
            status = 0 if own != first else 2
            del client
            gc.collect()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert loop.run_until_complete(client.get(origin.http + "/get")).json()["connection"] == first
    loop.close()


async def _connection(client, origin):
    return (await client.get(origin.http + "/get")).json()["connection"]


def test_context_is_not_held_by_connections(origin):
    class Heavy:
        pass

    name = contextvars.ContextVar("name")

    async def main():
        async with mimus.AsyncClient() as client:

            async def call():
                heavy = Heavy()
                name.set(heavy)
                await client.get(origin.http + "/get", timeout=60)
                return weakref.ref(heavy)

            ref = await asyncio.create_task(call())
            # The loop holds the task until it has run whom that woke.
            await asyncio.sleep(0)
            gc.collect()
            assert ref() is None

    asyncio.run(main())


def test_anyio(origin):
    anyio = pytest.importorskip("anyio")

    async def main():
        async with mimus.AsyncClient() as client:
            with anyio.move_on_after(0.05) as scope:
                await client.get(origin.http + "/delay/60")
            assert scope.cancelled_caught
            with pytest.raises(TimeoutError):
                with anyio.fail_after(0.05):
                    await client.get(origin.http + "/delay/60")
            statuses = []

            async def get():
                statuses.append((await client.get(origin.http + "/get")).status)

            async with anyio.create_task_group() as group:
                for _ in range(10):
                    group.start_soon(get)
            assert statuses == [200] * 10

    anyio.run(main)


@pytest.mark.skipif(not hasattr(asyncio, "eager_task_factory"), reason="Python 3.12")
def test_eager_tasks(origin):
    async def main():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        async with mimus.AsyncClient() as client:
            answers = await asyncio.gather(*[client.get(origin.http + "/get") for _ in range(10)])
            assert {answer.status for answer in answers} == {200}
            pieces = [b"one", b"two", b"three"]

            async def given(wait):
                for piece in pieces:
                    await asyncio.sleep(wait)
                    yield piece

            for wait in (0, 0.001):
                answer = await client.post(origin.http + "/anything", content=given(wait))
                assert answer.json()["data"] == "onetwothree"
            left = asyncio.Event()

            async def endless():
                try:
                    while True:
                        yield b"x" * 65536
                finally:
                    left.set()

            # Cancelled with its call, though its task ran before anybody knew of it.
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await client.post(f"http://{origin.ports['never-read']}/", content=endless())
            await asyncio.wait_for(left.wait(), 30)
            async with client.stream("GET", origin.http + "/stream/3") as streamed:
                assert len([line async for line in streamed.aiter_lines()]) == 3

    asyncio.run(main())


def test_memory_stays_flat(origin):
    def resident():
        gc.collect()
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    async def main():
        async with mimus.AsyncClient() as client:

            async def some(n):
                for _ in range(n):
                    await client.get(origin.http + "/bytes/10000")

            await asyncio.gather(*[some(100) for _ in range(10)])
            before = resident()
            await asyncio.gather(*[some(300) for _ in range(10)])
            # 3000 bodies are 30 MB, were they kept.
            assert resident() - before < 8_000_000

    asyncio.run(main())


def test_connections_of_closed_loops_are_closed(make_loop, origin):
    """One client, many short loops: each leaves idle connections, and the next lets them go."""
    client = mimus.AsyncClient()

    calls = 5

    async def main():
        await asyncio.gather(*[client.get(origin.http + "/get") for _ in range(calls)])

    run(make_loop, main)
    run(make_loop, main)
    before = descriptors()
    for _ in range(10):
        run(make_loop, main)
    # Where the loop cannot watch sockets they live on a thread of ours, and outlive it: as many as there were calls
    # at once, which may have been fewer at first.
    assert settles_at(before + calls)
