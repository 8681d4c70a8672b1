"""How the package is used, for type checkers to read: nothing here is run. What is wrong says so with an ignore, which
mypy refuses where nothing is wrong."""

import datetime
import pathlib
import re
from collections.abc import AsyncIterator, Coroutine, Iterator, MutableMapping
from http.cookiejar import CookieJar
from typing import Any, assert_type

from typing_extensions import Unpack

import mimus
from mimus import testing
from mimus.types import AsyncRequestOptions, ClientOptions, ProfileName, RequestOptions


def calls(client: mimus.Client) -> None:
    assert_type(client.get("https://example.com/"), mimus.Response)
    assert_type(client.request("PURGE", "https://example.com/"), mimus.Response)
    client.get("/", params={"q": "a", "page": 2, "all": True, "none": None, "tags": ["a", "b"]})
    client.get("/", params=[("q", "a"), ("q", "b")])
    client.get("/", params="q=a")
    client.get("/", headers={"X-One": "1", "X-Two": 2})
    client.get("/", headers=[("X-One", "1"), ("X-One", b"2")])
    client.get("/", headers={b"X-One": b"1"}, cookies={"a": "b"})
    client.get("/", headers=mimus.get("/").headers)
    client.get("/", auth=("user", "password"), timeout=3)
    client.get("/", auth=mimus.Digest("user", "password"), timeout=mimus.Timeout(3.0, read=None))
    client.get("/", auth=lambda request: request.headers.add("X-Token", "secret"))
    client.get("/", follow_redirects=3, verify=pathlib.Path("ca.pem"), cert=("cert.pem", "key.pem"))
    client.get("/", proxy={"https": "http://proxy:3128", "no_proxy": "localhost"}, resolve={"a": ["127.0.0.1"]})
    client.get("/", proxy=False, retries=mimus.Retry(2, statuses=[503]), http_version="2", kind="fetch")
    client.get("/", colour="red")  # type: ignore[call-arg]
    client.get("/", http_version="4")  # type: ignore[arg-type]
    client.get("/", timeout="soon")  # type: ignore[arg-type]
    client.get("/", headers="X-One: 1")  # type: ignore[arg-type]
    client.get(None)  # type: ignore[arg-type]


def bodies(client: mimus.Client) -> None:
    client.post("/", content="text")
    client.post("/", content=b"bytes")
    client.post("/", content=memoryview(b"bytes"))
    client.post("/", content=pathlib.Path("file"))
    client.post("/", content=(piece for piece in (b"a", b"b")))
    client.post("/", data={"a": 1, "b": ["x", "y"]})
    client.post("/", data=[("a", "b")])
    client.post("/", json={"a": [1, 2, {"b": None}]})
    with open("file", "rb") as file:
        client.post("/", content=file)
        client.post("/", files={"a": file, "b": ("name.txt", b"text", "text/plain"), "c": (None, "text")})
        client.post("/", data={"a": "b"}, files=[("a", ("name", file, None, {"X-One": "1"}))])
    client.post("/", content=pieces())  # type: ignore[arg-type]
    client.post("/", content=7)  # type: ignore[arg-type]


async def pieces() -> AsyncIterator[bytes]:
    yield b"piece"


def responses(response: mimus.Response) -> None:
    assert_type(response.status, int)
    assert_type(response.text, str)
    assert_type(response.content, bytes)
    assert_type(response.json(parse_float=str), Any)
    assert_type(response.headers.get("a"), str | None)
    assert_type(response.headers.get("a", ""), str)
    assert_type(response.headers.get_list("a"), list[str])
    assert_type(response.headers.pop("a"), str)
    assert_type(response.elapsed, datetime.timedelta)
    assert_type(response.timings.dns, float | None)
    assert_type(response.history, list[mimus.Hop])
    assert_type(response.raise_for_status(), mimus.Response)
    assert_type(response.iter_lines(), Iterator[str])
    assert_type(response.iter_raw(), Iterator[memoryview])
    assert_type(response.save("file", progress=lambda done, total: print(done, total)), int)
    fields: MutableMapping[str, str] = response.headers
    print(fields)
    with response as same:
        assert_type(same, mimus.Response)
    response.encoding = None
    response.status = 200  # type: ignore[misc]
    if response.tls is not None:
        assert_type(response.tls.alpn, str | None)
    response.tls.alpn  # type: ignore[union-attr]


async def awaited(client: mimus.AsyncClient) -> None:
    assert_type(client.get("/"), mimus.Call[mimus.AsyncResponse])
    response = await client.post("/", content=pieces())
    assert_type(response, mimus.AsyncResponse)
    assert_type(response.raise_for_status(), mimus.AsyncResponse)
    assert_type(await response.aread(), bytes)
    async for line in response.aiter_lines():
        assert_type(line, str)
    async for piece in response:
        assert_type(piece, bytes)
    async with client.stream("GET", "/", timeout=None) as streamed:
        assert_type(streamed, mimus.AsyncResponse)
    async with client.get("/", stream=True) as streamed:
        assert_type(streamed, mimus.AsyncResponse)
    async with mimus.AsyncClient(hooks={"request": [see], "response": see_response}) as same:
        assert_type(same, mimus.AsyncClient)
    coroutine: Coroutine[Any, Any, mimus.AsyncResponse] = client.get("/")
    await coroutine
    assert_type(await response.asave("file"), int)
    await client.aclose()
    client.get("/").status  # type: ignore[attr-defined]
    client.stream("GET", "/", stream=True)  # type: ignore[call-arg]


def sockets(client: mimus.Client) -> None:
    with client.websocket("/", subprotocols=["a"], compression=mimus.Deflate(level=6), timeout=3) as socket:
        assert_type(socket, mimus.WebSocket)
        socket.send("text")
        socket.send(bytearray(b"bytes"))
        assert_type(socket.recv(timeout=1), str | bytes)
        assert_type(socket.recv_text(), str)
        assert_type(socket.recv_batch(10), list[str | bytes])
        assert_type(socket.close_code, int | None)
        for message in socket:
            assert_type(message, str | bytes)
        socket.send(7)  # type: ignore[arg-type]
        socket.send_text(b"bytes")  # type: ignore[arg-type]
    client.websocket("/", json={})  # type: ignore[call-arg]
    with client.sse("/", json={"stream": True}, reconnect=mimus.Reconnect(retry=1)) as source:
        for event in source:
            assert_type(event, mimus.Event)
            assert_type(event.data, str)
            assert_type(event.retry, int | None)
    client.sse("/", content=pieces())  # type: ignore[arg-type]
    for event in client.get("/", stream=True).iter_events():
        assert_type(event, mimus.Event)
    try:
        mimus.websocket("wss://example.com/")
    except mimus.WebSocketRefused as error:
        assert_type(error.status, int | None)
    except mimus.WebSocketClosed as error:
        assert_type(error.code, int)


async def awaited_sockets(client: mimus.AsyncClient) -> None:
    async with client.websocket("/") as socket:
        assert_type(socket, mimus.AsyncWebSocket)
        assert_type(socket.recv(), mimus.Call[str | bytes])
        assert_type(await socket.send("text"), None)
        async for message in socket:
            assert_type(message, str | bytes)
    opened = await client.websocket("/", http_version="2")
    await opened.close(1000, "done")
    async for event in client.sse("/", content=pieces()):
        assert_type(event, mimus.Event)
    response = await client.get("/", stream=True)
    async for event in response.aiter_events():
        assert_type(event, mimus.Event)


async def see(request: mimus.OutgoingRequest) -> None:
    request.headers["X-Seen"] = "yes"


async def see_response(response: mimus.AsyncResponse) -> None:
    print(response.status)


def clients(name: ProfileName, jar: CookieJar) -> None:
    mimus.Client(profile=name, cookies=jar, limits=mimus.Limits(max_connections=10))
    mimus.Client(profile="chrome", cookies=False, hooks={"request": lambda request: print(request.url)})
    mimus.Client(profile="netscape")  # type: ignore[arg-type]
    mimus.Client(headers={"User-Agent": None}, base_url="https://example.com/")
    options: ClientOptions = {"timeout": 3, "verify": False}
    with mimus.Client(**options) as client:
        assert_type(client, mimus.Client)
        if client.cookies is not None:
            assert_type(client.cookies.dump(), CookieJar)


def passed_on(client: mimus.Client, url: str, **options: Unpack[RequestOptions]) -> bytes:
    return client.get(url, **options).content


async def passed_on_awaited(client: mimus.AsyncClient, url: str, **options: Unpack[AsyncRequestOptions]) -> bytes:
    return (await client.get(url, **options)).content


class Named(mimus.Client):
    """A client of one's own."""

    def page(self) -> str:
        return self.get("/").text


def failures() -> None:
    assert_type(mimus.get("https://example.com/", timeout=1), mimus.Response)
    try:
        mimus.get("https://example.com/").raise_for_status()
    except mimus.StatusError as error:
        assert_type(error.response, mimus.Response | mimus.AsyncResponse | None)
        assert_type(error.status, int | None)
    except mimus.Error as error:
        assert_type(error.phase, str | None)


def answered(request: testing.Request) -> testing.Response:
    return testing.Response(200, json={"path": request.path}, headers=[("X-One", request.headers["x-two"])])


async def answered_later(request: testing.Request) -> testing.Response:
    return testing.Response(404, text=request.text)


async def transports() -> None:
    mimus.Client(transport=answered)
    mimus.Client(transport=testing.MockTransport(answered))
    mimus.Client(transport=answered_later)  # type: ignore[arg-type]
    mimus.Client(transport="answered")  # type: ignore[arg-type]
    mimus.AsyncClient(transport=answered)
    mimus.AsyncClient(transport=answered_later)
    with testing.Router("https://example.com", assert_all_called=False, pass_through=["http://localhost"]) as server:
        assert_type(server, testing.Router)
        route = server.get("/user", params={"id": 7}, headers={"X-One": "1"})
        assert_type(route.raises(mimus.ConnectError).respond(json={"a": 1}).handle(answered), testing.Route)
        server.route("POST", re.compile("https://example"), where=lambda request: bool(request.form))
        assert_type(route.calls[0].request, testing.Request)
        assert_type(route.calls[0].response, testing.Response | None)
        mimus.Client(transport=server)
        route.respond(colour="red")  # type: ignore[call-arg]
    async with testing.Router() as awaited:
        assert_type(awaited, testing.Router)
