"""Drives the SDKs of OpenAI and Anthropic, and LangChain, over Mimus's transports against `chat.py`.

    sdks.py JOB URL CALLS [CA]

JOB is one of those below. It prints a line of JSON: what the server has seen meanwhile, and `text`, what the model
said. It raises where an answer is not what was sent.
"""

import asyncio
import json
import sys

import httpx2

import mimus
import mimus.httpx2

SAID = "Guten Tag, Größe und 鳥 zählen 🐦."
ASKED = [{"role": "user", "content": "Was siehst du?"}]
KEY = "not-a-secret"
# Words that are listened to before the listener leaves.
SOME = 3


def expect(said):
    if said != SAID:
        raise AssertionError(f"the model said {said!r}")


class OpenAi:
    def __init__(self, url, transports):
        import openai

        base = f"{url}/v1"
        self.sync = openai.OpenAI(api_key=KEY, base_url=base, max_retries=0, http_client=transports.client())
        self.later = openai.AsyncOpenAI(
            api_key=KEY, base_url=base, max_retries=0, http_client=transports.async_client()
        )

    def call(self, client, model):
        return client.chat.completions.create(model=model, messages=ASKED, stream=True)

    @staticmethod
    def word(event):
        return event.choices[0].delta.content or ""


class Anthropic:
    def __init__(self, url, transports):
        import anthropic

        self.sync = anthropic.Anthropic(
            api_key=KEY, base_url=url, max_retries=0, http_client=transports.client()
        )
        self.later = anthropic.AsyncAnthropic(
            api_key=KEY, base_url=url, max_retries=0, http_client=transports.async_client()
        )

    def call(self, client, model):
        return client.messages.create(model=model, messages=ASKED, max_tokens=64, stream=True)

    @staticmethod
    def word(event):
        return event.delta.text if event.type == "content_block_delta" else ""


class Transports:
    def __init__(self, ca):
        self.options = {"verify": ca or True, "trust_env": False}

    def client(self):
        return httpx2.Client(transport=mimus.httpx2.Transport(**self.options), timeout=30)

    def async_client(self):
        return httpx2.AsyncClient(transport=mimus.httpx2.AsyncTransport(**self.options), timeout=30)


def listen(sdk, calls):
    for _ in range(calls):
        expect("".join(sdk.word(event) for event in sdk.call(sdk.sync, "short")))


def leave(sdk, calls):
    for _ in range(calls):
        heard = 0
        with sdk.call(sdk.sync, "endless") as events:
            for event in events:
                heard += bool(sdk.word(event))
                if heard == SOME:
                    break


async def listen_later(sdk, calls):
    for _ in range(calls):
        expect("".join([sdk.word(event) async for event in await sdk.call(sdk.later, "short")]))


async def leave_later(sdk, calls):
    """Every other call is cancelled where it waits; the rest are closed."""
    for number in range(calls):
        begun = asyncio.Event()

        async def hear(begun, is_cancelled):
            heard = 0
            events = await sdk.call(sdk.later, "endless")
            async with events:
                async for event in events:
                    heard += bool(sdk.word(event))
                    if heard == SOME:
                        begun.set()
                        if not is_cancelled:
                            return

        hearing = asyncio.create_task(hear(begun, number % 2 == 0))
        await asyncio.wait((hearing, asyncio.create_task(begun.wait())), return_when=asyncio.FIRST_COMPLETED)
        if number % 2 == 0:
            hearing.cancel()
        done = (await asyncio.gather(hearing, return_exceptions=True))[0]
        if done is not None and not isinstance(done, asyncio.CancelledError):
            raise done


async def crowd_later(sdk, calls):
    """Calls at the same time, which their listeners leave at the same time."""
    for _ in range(calls // 50):
        hearing = [asyncio.create_task(leave_later(sdk, 2)) for _ in range(25)]
        await asyncio.gather(*hearing)


def langchain(url, transports):
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(
        model="short",
        api_key=KEY,
        base_url=f"{url}/v1",
        max_retries=0,
        http_client=transports.client(),
        http_async_client=transports.async_client(),
    )
    expect(model.invoke("Was siehst du?").text)
    expect("".join(part.text for part in model.stream("Was siehst du?")))
    expect(asyncio.run(model.ainvoke("Was siehst du?")).text)


SDKS = {"openai": OpenAi, "anthropic": Anthropic}
JOBS = {"listen": listen, "leave": leave}
LATER = {"listen": listen_later, "leave": leave_later, "crowd": crowd_later}


def main(job, url, calls, ca=None):
    transports = Transports(ca)
    counter = mimus.Client(verify=ca or True, trust_env=False)
    counter.get(f"{url}/seen")
    if job == "langchain":
        langchain(url, transports)
    else:
        name, kind, what = job.split("-")
        sdk = SDKS[name](url, transports)
        if kind == "sync":
            JOBS[what](sdk, int(calls))
        else:
            asyncio.run(LATER[what](sdk, int(calls)))
    print(json.dumps(counter.get(f"{url}/seen").json()))


if __name__ == "__main__":
    main(*sys.argv[1:])
