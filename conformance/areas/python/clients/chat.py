"""A server of chat completions, in the dialects of OpenAI and of Anthropic, as an ASGI application.

POST /v1/chat/completions and /v1/messages, with `stream` or without. The model "short" says a few words; "endless"
goes on until nobody listens. What it sends is cut inside of characters. GET /seen tells what it has seen, and begins
to count anew.
"""

import asyncio
import json

WORDS = ["Guten", " Tag", ", ", "Größe", " und", " 鳥", " zählen", " 🐦", "."]


class Seen:
    def __init__(self):
        self.peers = set()
        self.requests = 0
        self.completed = 0
        self.given_up = 0
        self.versions = set()


SEEN = Seen()
UNDER_WAY = set()


def endless():
    while True:
        yield " 鳥"


class OpenAi:
    @staticmethod
    def event(data):
        return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"

    def events(self, model, words):
        def chunk(delta, why=None):
            choice = {"index": 0, "delta": delta, "finish_reason": why, "logprobs": None}
            return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}

        yield self.event(chunk({"role": "assistant", "content": ""}))
        for word in words:
            yield self.event(chunk({"content": word}))
        yield self.event(chunk({}, "stop"))
        yield b"data: [DONE]\n\n"

    def whole(self, model, text):
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return {
            "id": "c1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice], "usage": usage
        }


class Anthropic:
    @staticmethod
    def event(data):
        return f"event: {data['type']}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()

    def message(self, model, content, why):
        return {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": why,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    def events(self, model, words):
        yield self.event({"type": "message_start", "message": self.message(model, [], None)})
        block = {"type": "text", "text": ""}
        yield self.event({"type": "content_block_start", "index": 0, "content_block": block})
        for word in words:
            delta = {"type": "text_delta", "text": word}
            yield self.event({"type": "content_block_delta", "index": 0, "delta": delta})
        yield self.event({"type": "content_block_stop", "index": 0})
        end = {"stop_reason": "end_turn", "stop_sequence": None}
        yield self.event({"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}})
        yield self.event({"type": "message_stop"})

    def whole(self, model, text):
        return self.message(model, [{"type": "text", "text": text}], "end_turn")


DIALECTS = {"/v1/chat/completions": OpenAi(), "/v1/messages": Anthropic()}


async def body_of(receive):
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


async def answer(send, status, content_type, body):
    headers = [(b"content-type", content_type), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def stream(send, events, pace):
    headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for event in events:
        # Behind the first byte of a character of several, where there is one.
        cut = next((at + 1 for at, byte in enumerate(event) if byte >= 0xC0), len(event) // 2)
        for piece in (event[:cut], event[cut:]):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if pace:
            await asyncio.sleep(pace)
    await send({"type": "http.response.body", "body": b""})


async def until_gone(receive):
    while (await receive())["type"] != "http.disconnect":
        pass


async def streamed(receive, send, events, pace):
    """Streams; whether it came to its end."""
    writing = asyncio.ensure_future(stream(send, events, pace))
    leaving = asyncio.ensure_future(until_gone(receive))
    try:
        await asyncio.wait((writing, leaving), return_when=asyncio.FIRST_COMPLETED)
        return writing.done() and not writing.cancelled() and writing.exception() is None
    finally:
        for task in (writing, leaving):
            task.cancel()
        await asyncio.gather(writing, leaving, return_exceptions=True)


async def seen(send):
    global SEEN
    # Whoever has gone away is noticed soon.
    for _ in range(500):
        if not UNDER_WAY:
            break
        await asyncio.sleep(0.01)
    told = {
        "connections": len(SEEN.peers),
        "requests": SEEN.requests,
        "completed": SEEN.completed,
        "given_up": SEEN.given_up,
        "under_way": len(UNDER_WAY),
        "versions": sorted(SEEN.versions),
    }
    SEEN = Seen()
    await answer(send, 200, b"application/json", json.dumps(told).encode())


async def application(scope, receive, send):
    if scope["type"] != "http":
        return
    if scope["path"] == "/seen":
        await seen(send)
        return
    body = await body_of(receive)
    dialect = DIALECTS.get(scope["path"])
    if dialect is None:
        await answer(send, 404, b"application/json", b'{"error": {"message": "no such thing"}}')
        return
    SEEN.requests += 1
    SEEN.versions.add(scope["http_version"])
    SEEN.peers.add(tuple(scope["client"]))
    request = json.loads(body)
    model = request["model"]
    if not request.get("stream"):
        whole = dialect.whole(model, "".join(WORDS))
        await answer(send, 200, b"application/json", json.dumps(whole).encode())
        SEEN.completed += 1
        return
    is_endless = model == "endless"
    events = dialect.events(model, endless() if is_endless else WORDS)
    mine, counts = object(), SEEN
    UNDER_WAY.add(mine)
    completed = False
    try:
        completed = await streamed(receive, send, events, 0.001 if is_endless else 0)
    finally:
        UNDER_WAY.discard(mine)
        counts.completed += completed
        counts.given_up += not completed
