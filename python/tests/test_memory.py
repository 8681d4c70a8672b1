"""Memory stays what it is however many calls are made: MIMUS_CALLS of each kind, of which `make python-memory` makes
100 000."""

import asyncio
import os
import pathlib

import pytest

import mimus

CALLS = int(os.environ.get("MIMUS_CALLS", "2000"))
STATM = pathlib.Path("/proc/self/statm")

# What an allocator may still take once the first tenth of the calls is over. 100 000 calls that lose ten bytes each, or
# the 1800 of the small run that lose 600, are over it.
SPARE = 1024 * 1024

IN_FLIGHT = 16

pytestmark = pytest.mark.skipif(not STATM.exists(), reason="the system does not tell what is resident")


def resident():
    """The resident set, in bytes."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def judge(kind, before):
    after = resident()
    print(f"\n{kind}: {before / 1024:.0f} KiB resident after {CALLS // 10} calls, {after / 1024:.0f} after {CALLS}")
    assert after - before < SPARE


def each(kind, call):
    """Makes the calls, each told its number."""
    for number in range(CALLS // 10):
        call(number)
    before = resident()
    for number in range(CALLS // 10, CALLS):
        call(number)
    judge(kind, before)


def each_async(kind, call):
    """The same, so many at a time."""

    async def lane(numbers):
        for number in numbers:
            await call(number)

    async def crowd(first, last):
        await asyncio.gather(*(lane(range(first + at, last, IN_FLIGHT)) for at in range(IN_FLIGHT)))

    async def main():
        await crowd(0, CALLS // 10)
        before = resident()
        await crowd(CALLS // 10, CALLS)
        judge(kind, before)

    return main()


@pytest.mark.parametrize("port", ["http", "https", "tls-h2"])
def test_calls(client, origin, port):
    def call(number):
        # Each URL is new, and the answer is looked at in every way.
        response = client.get(origin.url(f"/get?n={number}", port), headers={"X-Number": str(number)})
        assert response.json()["url"].endswith(f"n={number}")
        assert response.text and response.content and response.headers["content-type"]

    each(f"GET, {port}", call)


def test_uploads_and_failures(client, origin):
    def call(number):
        assert client.post(origin.http + "/post", json={"number": number}).ok
        with pytest.raises(mimus.StatusError):
            client.get(origin.http + "/status/404").raise_for_status()
        with client.get(origin.http + "/bytes/65536", stream=True) as response:
            next(response.iter_bytes(1024))

    each("POST, 404, a stream that is left", call)


@pytest.mark.parametrize("port", ["http", "tls-h2"])
def test_async_calls(origin, port):
    async def main():
        async with mimus.AsyncClient(verify=str(origin.ca)) as client:

            async def call(number):
                response = await client.get(origin.url(f"/get?n={number}", port))
                assert response.json()["url"].endswith(f"n={number}")

            await each_async(f"async GET, {port}", call)

    asyncio.run(main())


def test_async_calls_that_are_cancelled(origin):
    async def main():
        async with mimus.AsyncClient() as client:

            async def call(number):
                task = asyncio.ensure_future(client.get(origin.http + "/delay/60"))
                # Cancelled before it ran, while it is connecting, or while it waits for the answer.
                for _ in range(number % 4):
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

            await each_async("async GET that is cancelled", call)

    asyncio.run(main())
