"""The fault proxy is fair: the vendor's own SDK reads through it what it reads without it."""

from __future__ import annotations

import httpx
import openai
import pytest

from support.fake_server import CUT, FakeServer, Reply
from support.fault_proxy import FaultProxy
from support.faults import Fault, Nothing, Reset, Slices, Status, Truncate
from support.wires.openai_chat import WIRE

BODIES = [
    WIRE.said("hello", " wörld😀"),
    WIRE.called(("c1", "glob", {"pattern": "ü*.py"}), ("c2", "glob", {})),
    WIRE.cut("so far"),
]


async def chunks(url: str) -> list[object]:
    """What the SDK reads of three replies over one client."""
    read: list[object] = []
    async with openai.AsyncOpenAI(base_url=url, api_key="k" * 9, max_retries=0) as client:
        for _ in BODIES:
            stream = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "hi"}], stream=True
            )
            read.append([chunk async for chunk in stream])
    return read


@pytest.mark.parametrize("framing", ["chunked", "close"])
@pytest.mark.parametrize("fault", [Nothing(), Slices(1), Slices(50)])
async def test_the_sdk_reads_the_same_through_it(fault: Fault, framing: str) -> None:
    replies = [
        Reply(WIRE.frames(body), framing="chunked" if framing == "chunked" else "close")
        for body in BODIES
    ]
    async with FakeServer(*replies) as server:
        bare = await chunks(server.url + "/v1")
        sent = server.exchanges
        async with FaultProxy(server.url + "/v1", fault) as proxy:
            server.replies.extend(replies)
            assert await chunks(proxy.url) == bare
    assert [len(part) for part in bare if isinstance(part, list)] == [5, 11, 4]
    told = [(each.method, each.path, each.json) for each in sent]
    assert told[3:] == told[:3]
    assert sent[3].headers["authorization"] == sent[0].headers["authorization"]


async def lost(url: str) -> bool:
    """Whether the SDK says that the connection was lost within a reply."""
    async with openai.AsyncOpenAI(base_url=url, api_key="k" * 9, max_retries=0) as client:
        stream = await client.chat.completions.create(model="m", messages=[], stream=True)
        try:
            async for _ in stream:
                pass
        except (openai.APIConnectionError, httpx.TransportError):
            return True
    return False


@pytest.mark.parametrize("fault", [Reset(60), Truncate(60)])
async def test_the_sdk_takes_its_faults_for_real(fault: Fault) -> None:
    async with FakeServer(WIRE.reply(BODIES[0])) as server, FaultProxy(server.url, fault) as proxy:
        assert await lost(proxy.url)


async def test_the_sdk_reads_its_statuses() -> None:
    body = b'{"error": {"message": "slow down"}}'
    fault = Status(429, retry_after="7", body=body)
    async with FakeServer(WIRE.reply(BODIES[0])) as server:
        async with (
            FaultProxy(server.url, fault, Nothing()) as proxy,
            openai.AsyncOpenAI(base_url=proxy.url, api_key="k" * 9, max_retries=0) as client,
        ):
            with pytest.raises(openai.RateLimitError, match="slow down") as caught:
                await client.chat.completions.create(model="m", messages=[])
            assert caught.value.response.headers["retry-after"] == "7"
            assert server.exchanges == []
            stream = await client.chat.completions.create(model="m", messages=[], stream=True)
            assert len([chunk async for chunk in stream]) == 5
        assert (len(proxy.exchanges), len(server.exchanges)) == (2, 1)


async def test_what_the_server_breaks_stays_broken() -> None:
    reply = Reply([WIRE.frames(BODIES[0])[0], CUT])
    async with FakeServer(reply) as server, FaultProxy(server.url) as proxy:
        assert await lost(proxy.url)
