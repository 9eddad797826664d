"""The composition root, with everything real but the model."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agentls.agent.pipeline import FromPassages, ReAct
from agentls.app import App, build, models_folder
from agentls.core.errors import NoModel, Unauthorized
from agentls.core.events import BlockDelta, BlockStart, BlockStop, Event, Status
from agentls.core.messages import Message, TextBlock, ToolResult
from agentls.core.ports import Mode, ToolContext
from agentls.core.requests import Capabilities, ModelInfo, ToolCalling
from agentls.settings import Settings
from support.agent_fakes import FixedApprover, SteppedModel, script
from support.fake_server import FakeServer, refused
from support.openai_server import OpenAIServer, called, said


def settings(**llm: object) -> Settings:
    return Settings.model_validate({"llm": llm})


async def run(app: App, text: str, mode: Mode = "ask") -> list[Event]:
    events: list[Event] = []

    async def sink(event: Event) -> None:
        events.append(event)

    session = app.new_session(mode=mode)
    await session.prompt([TextBlock(text=text)], sink=sink, approver=FixedApprover())
    return events


async def test_a_turn_over_http_sends_the_system_prompt_and_all_tools(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n", "utf-8")
    async with OpenAIServer(called("read_file", path="a.py"), said("It sets x.")) as server:
        app = await build(
            settings(provider="openai", openai={"base_url": server.url, "model": "m"}),
            workspace=tmp_path,
        )
        await run(app, "what is in a.py?")
        await app.aclose()
        first, second = (await server.exchange(1)).json, (await server.exchange(2)).json
    assert [tool["function"]["name"] for tool in first["tools"]] == [
        "read_file",
        "write_file",
        "edit_file",
        "glob",
        "grep",
        "bash",
    ]
    system, question = first["messages"]
    assert system["role"] == "system"
    assert str(tmp_path) in system["content"]
    assert "asked before anything is changed" in system["content"]
    assert question == {"role": "user", "content": "what is in a.py?"}
    assert [m["role"] for m in second["messages"]] == ["system", "user", "assistant", "tool"]
    assert second["messages"][3]["content"] == "x = 1"


async def test_the_first_request_of_ask_mode_is_small(tmp_path: Path) -> None:
    async with OpenAIServer(said("hi")) as server:
        app = await build(
            settings(provider="openai", openai={"base_url": server.url, "model": "m"}),
            workspace=tmp_path,
        )
        await run(app, "hello")
        await app.aclose()
        assert len((await server.exchange()).body) <= 5_500


async def test_plan_mode_offers_nothing_that_changes(tmp_path: Path) -> None:
    async with OpenAIServer(said("hi")) as server:
        app = await build(
            settings(provider="openai", openai={"base_url": server.url, "model": "m"}),
            workspace=tmp_path,
        )
        await run(app, "hello", mode="plan")
        await app.aclose()
        body = (await server.exchange()).json
    assert [t["function"]["name"] for t in body["tools"]] == ["read_file", "glob", "grep"]


async def test_deny_rules_hold_for_tools_and_for_passages(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "plan.md").write_text("The zebra password is 1234.\n", "utf-8")
    (tmp_path / "zoo.md").write_text("A zebra has stripes.\n", "utf-8")
    replies = script(
        tmp_path / "secrets",
        {"tool_calls": [{"name": "read_file", "arguments": {"path": "secrets/plan.md"}}]},
        {"text": "no"},
    )
    app = await build(
        Settings.model_validate(
            {
                "llm": {"provider": "scripted", "script": str(replies)},
                "permissions": {"deny": ["read_file(secrets/**)"]},
            }
        ),
        workspace=tmp_path,
    )
    events = await run(app, "zebra?")
    results = [e.item for e in events if e.type == "block_stop" and isinstance(e.item, ToolResult)]
    assert [r.is_error for r in results] == [True]
    assert "1234" not in str(events)
    assert [p.path for p in await app.passages("zebra")] == ["zoo.md"]


async def test_a_rule_that_does_not_parse_is_reported(tmp_path: Path) -> None:
    rules = Settings.model_validate({"permissions": {"allow": ["nonsense(("]}})
    assert len((await build(rules, workspace=tmp_path)).problems) == 1


async def test_a_model_is_chosen_once_and_anew_after_a_change(tmp_path: Path) -> None:
    first = script(tmp_path, {"text": "one"})
    app = await build(settings(provider="scripted", script=str(first)), workspace=tmp_path)
    assert await app.model() is await app.model()
    assert [choice.provider for choice, _ in app.chosen] == ["scripted"]
    assert app.reason == "scripted is the chosen provider"
    await app.reconfigure(settings(provider="openai", openai={"base_url": "http://127.0.0.1:1/v1"}))
    assert (await app.model()).info.provider == "openai"
    await app.aclose()


async def test_without_a_model_only_asking_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    app = await build(settings(ollama={"base_url": "http://127.0.0.1:1"}), workspace=tmp_path)
    session = app.new_session()
    with pytest.raises(NoModel):
        await session.prompt([TextBlock(text="hi")], sink=_nowhere, approver=FixedApprover())
    assert session.history == []


async def _nowhere(event: Event) -> None:
    return None


@pytest.mark.parametrize(
    ("calling", "tools", "messages"), [("none", 0, 2), ("constrained", 6, 2), ("native", 6, 1)]
)
async def test_what_a_model_can_do_decides_how_it_is_asked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    calling: ToolCalling,
    tools: int,
    messages: int,
) -> None:
    (tmp_path / "zoo.md").write_text("A zebra has stripes.\n", "utf-8")
    app = await build(Settings(), workspace=tmp_path)
    model = SteppedModel(
        [
            *_text("Stripes, says zoo.md."),
            Status(state="finished", stop_reason="end_turn"),
        ]
    )
    model.info = ModelInfo(
        provider="fake", name="m", capabilities=Capabilities(tool_calling=calling)
    )

    monkeypatch.setattr(app, "_model", model)
    await run(app, "What does a zebra have?")
    request = model.requests[0]
    assert (len(request.tools), len(request.items)) == (tools, messages)
    if messages == 2:
        shown = request.items[0]
        assert isinstance(shown, Message)
        assert "zoo.md" in shown.text
        assert "A zebra has stripes." in shown.text
    assert isinstance(app._pipeline(model.info), FromPassages if calling == "none" else ReAct)


def _text(text: str) -> list[Event]:
    return [
        BlockStart(index=0, block="text"),
        BlockDelta(index=0, text=text),
        BlockStop(index=0, item=Message.of("assistant", text)),
    ]


async def test_a_small_window_shortens_what_one_tool_says(tmp_path: Path) -> None:
    app = await build(Settings(), workspace=tmp_path)
    info = ModelInfo(provider="f", name="m", capabilities=Capabilities(context_window=8192))
    (tmp_path / "long.txt").write_text("line\n" * 5000, "utf-8")
    lengths = []
    for tools in (app.tools, app._tools(info)):
        tool = tools.get("read_file")
        assert tool is not None
        prepared = await tool.prepare({"path": "long.txt"}, ToolContext())
        lengths.append(len((await prepared.run()).content))
    assert lengths[0] > 9_000
    assert lengths[1] < 3_500


def test_the_models_folder_follows_the_cache(tmp_path: Path) -> None:
    assert models_folder({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "agentls" / "models"


async def test_a_missing_key_says_how_to_keep_one_and_a_refusing_ollama_does_not(
    tmp_path: Path,
) -> None:
    app = await build(settings(provider="openai-responses"), workspace=tmp_path)
    with pytest.raises(Unauthorized) as missing:
        await app.model()
    assert missing.value.hint.endswith("`agentls key set openai` keeps it in the keyring.")
    async with FakeServer(refused(401, {"error": "who are you?"})) as server:
        ollama = settings(provider="ollama", ollama={"base_url": server.url})
        app = await build(ollama, workspace=tmp_path)
        with pytest.raises(Unauthorized) as caught:
            await app.model()
    assert "key set" not in caught.value.hint


async def test_a_pool_that_cannot_be_built_leaves_nothing_open(tmp_path: Path) -> None:
    async with FakeServer(refused(404)) as server:
        pool = settings(
            pool=["ollama/m", "openai"], order="listed", ollama={"base_url": server.url}
        )
        app = await build(pool, workspace=tmp_path)
        with pytest.raises(Unauthorized, match="take it out of the pool"):
            await app.model()
        assert (await server.exchange()).path == "/api/show"
        await asyncio.wait_for(server.all_closed(), 5)
    assert (app.chosen, app.reason) == ([], "")
