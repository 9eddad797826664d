from __future__ import annotations

import asyncio
from typing import Any, cast

from agentls.lsp.convert import Update
from agentls.lsp.updates import UpdateStream


class Sent:
    """What went out, and a client that reads when told to."""

    def __init__(self) -> None:
        self.updates: list[Update] = []
        self.came = asyncio.Event()
        self.reading = asyncio.Event()
        self.reading.set()

    def send(self, update: Update) -> None:
        self.updates.append(update)
        self.came.set()

    async def drain(self) -> None:
        await self.reading.wait()

    def stream(self, interval_s: float) -> UpdateStream:
        return UpdateStream(self.send, self.drain, interval_s=interval_s)


def text(value: str, kind: str = "agent_message_chunk") -> Any:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": value}}


TOOL: Update = {"sessionUpdate": "tool_call", "toolCallId": "1"}
NEVER_S = 3600.0


async def test_the_first_text_goes_out_at_once_and_the_rest_is_gathered() -> None:
    sent = Sent()
    stream = sent.stream(NEVER_S)
    await stream.put(text("a"))
    assert sent.updates == [text("a")]
    for piece in "bcd":
        await stream.put(text(piece))
    assert sent.updates == [text("a")]
    stream.close()
    assert sent.updates == [text("a"), text("bcd")]


async def test_gathered_text_goes_out_when_its_time_has_come() -> None:
    sent = Sent()
    stream = sent.stream(0.01)
    await stream.put(text("a"))
    sent.came.clear()
    for piece in "bc":
        await stream.put(text(piece))
    async with asyncio.timeout(5):
        await sent.came.wait()
    assert sent.updates == [text("a"), text("bc")]
    stream.close()
    assert sent.updates == [text("a"), text("bc")]


async def test_the_order_is_kept_against_everything_else() -> None:
    sent = Sent()
    stream = sent.stream(NEVER_S)
    thought = text("hm", "agent_thought_chunk")
    for update in (text("a"), text("b"), TOOL, text("c"), thought, text("d")):
        await stream.put(update)
    stream.close()
    assert sent.updates == [text("a"), text("b"), TOOL, text("c"), thought, text("d")]


async def test_at_most_one_message_an_interval() -> None:
    sent = Sent()
    stream = sent.stream(1 / 60)
    loop = asyncio.get_running_loop()
    start = loop.time()
    while loop.time() - start < 0.25:
        await stream.put(text("x"))
        await asyncio.sleep(0)
    elapsed = loop.time() - start
    stream.close()
    assert 2 <= len(sent.updates) <= elapsed * 60 + 2


async def test_nothing_is_sent_after_the_end() -> None:
    sent = Sent()
    stream = sent.stream(0.001)
    await stream.put(text("a"))
    await stream.put(text("b"))
    stream.close()
    await stream.put(text("late"))
    await stream.put(TOOL)
    await asyncio.sleep(0.01)
    assert sent.updates == [text("a"), text("b")]


async def test_a_client_that_does_not_read_makes_the_producer_wait() -> None:
    sent = Sent()
    sent.reading.clear()
    stream = sent.stream(0)

    async def produce() -> None:
        for _ in range(1000):
            await stream.put(text("x"))

    task = asyncio.create_task(produce())
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(sent.updates) == 1
    sent.reading.set()
    await task
    texts = [cast("dict[str, str]", update["content"])["text"] for update in sent.updates]
    assert "".join(texts) == "x" * 1000
