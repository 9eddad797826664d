"""Thinking between texts and calls goes back in the place it had: providers refuse it elsewhere."""

from __future__ import annotations

from typing import Any

from pydantic import JsonValue

from agentls.core.messages import Item
from support import anthropic_streams as messages
from support import gemini_streams as gemini
from support import responses_streams as responses
from support.agent_fakes import FakeTool, rig
from support.fake_server import FakeServer
from support.openai_rig import Rig
from support.wires import anthropic, openai_responses
from support.wires import gemini as gemini_wire
from support.wires.wire import Wire


async def asked_again(wire: Wire, body: bytes) -> tuple[Any, list[Item]]:
    """The second request of a turn whose first reply calls `look`, and the history."""

    async def look(arguments: dict[str, JsonValue]) -> str:
        return "seen"

    async with FakeServer(wire.reply(body), wire.reply(wire.said("done"))) as server:
        async with Rig(server.url, wire.scheme()).model() as model:
            talk = rig(model, FakeTool("look", look))
            assert await talk.ask("hi") == "done"
        return server.exchanges[1].json, talk.history()


async def test_anthropic() -> None:
    body = messages.sse(
        messages.start(),
        *messages.words(0, "I see."),
        *messages.thoughts(1, "hm", signature="s1"),
        *messages.use(2, "t1", "look", "{}"),
        *messages.thoughts(3, "aha", signature="s2"),
        *messages.use(4, "t2", "look", "{}"),
        messages.ended("tool_use"),
        messages.STOP,
    )
    sent, _ = await asked_again(anthropic.WIRE, body)
    blocks = sent["messages"][1]["content"]
    assert [block["type"] for block in blocks] == [
        "text",
        "thinking",
        "tool_use",
        "thinking",
        "tool_use",
    ]
    assert [b["signature"] for b in blocks if b["type"] == "thinking"] == ["s1", "s2"]


async def test_responses() -> None:
    events = [
        *responses.think("rs_1", 0, "hm", encrypted="e1"),
        *responses.say("msg_1", 1, "I see."),
        *responses.think("rs_2", 2, "aha", encrypted="e2"),
        *responses.call("fc_1", 3, "look", "{}", call_id="c1"),
    ]
    body = responses.sse(*responses.ended(events))
    sent, _ = await asked_again(openai_responses.WIRE, body)
    kinds = [(i.get("type", "message"), i.get("encrypted_content")) for i in sent["input"]]
    assert [kind for kind in kinds if kind[0] != "message"] == [
        ("reasoning", "e1"),
        ("reasoning", "e2"),
        ("function_call", None),
        ("function_call_output", None),
    ]
    assert [kind for kind, _ in kinds].index("reasoning") < [
        i.get("role") for i in sent["input"]
    ].index("assistant")
    places = [i.get("encrypted_content") or i.get("role") for i in sent["input"]]
    assert places.index("e1") < places.index("assistant") < places.index("e2")


async def test_gemini() -> None:
    body = gemini.sse(
        gemini.chunk(gemini.text("I see.")),
        gemini.chunk(gemini.text("", signature="S1")),
        gemini.chunk(gemini.call("look", {}, call_id="c1")),
        gemini.last(gemini.text("")),
    )
    sent, _ = await asked_again(gemini_wire.WIRE, body)
    first, second = sent["contents"][1]["parts"]
    assert first == {"text": "I see.", "thoughtSignature": "S1"}
    assert "functionCall" in second
