"""WebSockets that threads, tasks and forks share."""

import asyncio
import os
import threading

import pytest

import mimus


def run(main):
    return asyncio.run(main())


def ws(origin, path):
    return origin.url(path).replace("http", "ws", 1)


def test_one_thread_sends_while_another_receives(client, origin):
    with client.websocket(ws(origin, "/ws/echo")) as socket:

        def send():
            for n in range(3000):
                socket.send(str(n) * 20)

        sender = threading.Thread(target=send)
        sender.start()
        for n in range(3000):
            assert socket.recv(timeout=60) == str(n) * 20
        sender.join()


def test_many_threads_may_send(client, origin):
    with client.websocket(ws(origin, "/ws/echo")) as socket:

        def send(thread):
            for n in range(200):
                socket.send_json([thread, n])

        senders = [threading.Thread(target=send, args=(thread,)) for thread in range(8)]
        for sender in senders:
            sender.start()
        seen = [socket.recv_json(timeout=60) for _ in range(8 * 200)]
        for sender in senders:
            sender.join()
        for thread in range(8):
            assert [n for one, n in seen if one == thread] == list(range(200))


def test_closing_ends_the_wait_of_another_thread(client, origin):
    with client.websocket(ws(origin, "/ws/echo")) as socket:
        begun, ended = threading.Event(), []

        def receive():
            socket.send("go")
            for message in socket:
                ended.append(message)
                begun.set()
            ended.append("end")

        receiver = threading.Thread(target=receive)
        receiver.start()
        assert begun.wait(60)
        socket.close()
        receiver.join(60)
        assert ended == ["go", "end"]


def test_two_threads_do_not_receive_at_a_time(client, origin):
    with client.websocket(ws(origin, "/ws/echo")) as socket:
        results = []

        def receive():
            try:
                results.append(socket.recv(timeout=60))
            except RuntimeError:
                results.append("refused")
                socket.send("let go")

        receivers = [threading.Thread(target=receive) for _ in range(2)]
        for receiver in receivers:
            receiver.start()
        for receiver in receivers:
            receiver.join()
        assert sorted(results) == ["let go", "refused"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_leaves_the_parents_socket_alone(client, origin):
    with client.websocket(ws(origin, "/ws/echo")) as socket:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                refused = 0
                for call in (lambda: socket.send("child"), socket.recv, socket.close):
                    try:
                        call()
                    except RuntimeError:
                        refused += 1
                socket.__exit__(None, None, None)
                status = 0 if refused == 3 else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        socket.send("parent")
        assert socket.recv(timeout=60) == "parent"


# Tasks.


def test_cancelling_a_receive_loses_no_message(origin):
    async def main():
        async with mimus.AsyncClient() as client, client.websocket(ws(origin, "/ws/echo")) as socket:
            seen = []
            for n in range(300):
                wait = asyncio.ensure_future(socket.recv())
                await socket.send(str(n))
                # The answer comes before, while, or after it is cancelled.
                for _ in range(n % 7):
                    await asyncio.sleep(0)
                if not wait.cancel():
                    seen.append(wait.result())
                    continue
                try:
                    seen.append(await wait)
                except asyncio.CancelledError:
                    pass
            while len(seen) < 300:
                seen.append(await socket.recv(timeout=60))
            assert seen == [str(n) for n in range(300)]

    run(main)


def test_a_receive_that_is_never_awaited_takes_nothing(origin):
    async def main():
        async with mimus.AsyncClient() as client:
            async with client.websocket(ws(origin, "/ws/count?n=3&stay=1")) as socket:
                assert await socket.recv() == "0"
                call = socket.recv()
                with pytest.warns(RuntimeWarning, match="never awaited"):
                    del call
                task = asyncio.ensure_future(socket.recv())
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert [await socket.recv(), await socket.recv()] == ["1", "2"]

    run(main)


def test_tasks_send_and_receive_at_a_time(origin):
    async def main():
        async with mimus.AsyncClient() as client, client.websocket(ws(origin, "/ws/echo")) as socket:

            async def send(task):
                for n in range(200):
                    await socket.send_json([task, n, "x" * 500])

            async def receive():
                return [(await socket.recv_json())[:2] for _ in range(8 * 200)]

            seen, *_ = await asyncio.gather(receive(), *(send(task) for task in range(8)))
            for task in range(8):
                assert [n for one, n in seen if one == task] == list(range(200))

    run(main)


def test_two_tasks_do_not_receive_at_a_time(origin):
    async def main():
        async with mimus.AsyncClient() as client, client.websocket(ws(origin, "/ws/echo")) as socket:
            first = asyncio.ensure_future(socket.recv())
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="receives"):
                await socket.recv()
            await socket.send("for the first")
            assert await first == "for the first"

    run(main)


def test_closing_ends_the_wait_of_another_task(origin):
    async def main():
        async with mimus.AsyncClient() as client, client.websocket(ws(origin, "/ws/echo")) as socket:

            async def receive():
                return [message async for message in socket]

            receiver = asyncio.ensure_future(receive())
            await asyncio.sleep(0)
            await socket.aclose()
            assert await receiver == []

    run(main)


def test_a_send_to_a_server_that_does_not_read_ends_with_the_close(origin):
    async def main():
        async with mimus.AsyncClient() as client:
            url = ws(origin, "/ws/stuck?ms=600000")
            async with client.websocket(url, close_timeout=0.1) as socket:
                sending = asyncio.ensure_future(socket.send(bytes(64 << 20)))
                await asyncio.sleep(0.01)
                assert not sending.done()
                await socket.close()
                with pytest.raises(mimus.WebSocketError):
                    await asyncio.wait_for(sending, 60)

    run(main)


def test_cancelling_frees_the_connection(origin):
    async def main():
        async with mimus.AsyncClient() as client:

            async def use():
                async with client.websocket(ws(origin, "/ws/silent"), close_timeout=3600) as socket:
                    opened.set_result(socket)
                    await socket.recv()

            opened = asyncio.get_running_loop().create_future()
            task = asyncio.ensure_future(use())
            socket = await opened
            before = len(os.listdir("/proc/self/fd"))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert len(os.listdir("/proc/self/fd")) < before
            assert socket.closed

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("there is no list of open files here")
    run(main)


def test_a_websocket_may_be_awaited(origin):
    async def main():
        async with mimus.AsyncClient() as client:
            socket = await client.websocket(ws(origin, "/ws/echo"))
            await socket.send("plain")
            assert await asyncio.wait_for(socket.recv(), 60) == "plain"
            async with socket as same:
                assert same is socket
            assert socket.closed

    run(main)
