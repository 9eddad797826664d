"""Calls in a model's text: those that are meant run, those that are only spoken of never do."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli_process import Cli
from support.cli_providers import (
    CASE,
    KEY,
    Case,
    configure,
    results_of,
    run,
    shown,
    system_of,
    text_of,
)
from support.fake_server import FakeServer, Reply

OPENAI, OLLAMA = CASE["openai"], CASE["ollama"]
READ = '{"name": "read_file", "arguments": {"path": "a.py"}}'
WRITE = '{"name": "write_file", "arguments": {"path": "made.txt", "content": "x"}}'
TAGGED = f"<tool_call>{WRITE}</tool_call>"
WITHOUT_TOOLS = shown("completion")

TEXT_FORMS = {"native": OPENAI, "text": OLLAMA}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    made = Cli.below(tmp_path)
    made.write("a.py", "x = 1\n")
    return made


def choose(cli: Cli, case: Case, server: FakeServer) -> None:
    cli.environment |= {"LLM_PROVIDER": case.name, **case.environment(server)}


async def test_a_model_without_tools_is_told_of_them_in_the_prompt(cli: Cli) -> None:
    replies = [
        OLLAMA.said("I will look.\n<tool", f"_call>{READ}</tool", "_call>"),
        OLLAMA.said("x is one"),
    ]
    async with FakeServer(WITHOUT_TOOLS, *replies) as server:
        choose(cli, OLLAMA, server)
        done = await run(cli, "ask", "--json", "what is x?")
    assert (done.code, done.result["text"], done.err) == (0, "x is one", "")
    assert results_of(done.lines) == [("read_file", "x = 1", False)]
    assert "<tool_call>" not in text_of(done.lines, "text")
    first, second = OLLAMA.asked(server)
    for exchange in (first, second):
        assert "tools" not in exchange.json
        system = system_of("ollama", exchange.json)
        assert "<tool_call>" in system
        assert '"read_file"' in system
    call, result = second.json["messages"][-2:]
    assert (call["role"], result["role"]) == ("assistant", "user")
    assert "tool_calls" not in call
    assert f"<tool_call>{READ}</tool_call>" in call["content"]
    assert "<tool_result" in result["content"]
    assert "x = 1" in result["content"]


async def test_any_provider_can_be_told_so(cli: Cli) -> None:
    configure(cli, '[llm.openai]\ntool_calling = "text"\n')
    replies = [OPENAI.said(f"<tool_call>{READ}</tool_call>"), OPENAI.said("x is one")]
    async with FakeServer(*replies) as server:
        choose(cli, OPENAI, server)
        done = await run(cli, "ask", "--json", "what is x?")
    assert (done.code, done.result["text"]) == (0, "x is one")
    assert results_of(done.lines) == [("read_file", "x = 1", False)]
    assert "tools" not in server.exchanges[0].json
    assert "<tool_call>" in system_of("openai_chat", server.exchanges[0].json)


@pytest.mark.parametrize(
    "printed",
    [
        f"```json\n{READ}\n```",
        f"I will look.\n\n```json\n{READ}\n```\n",
        f"<tool_call>\n{READ}\n</tool_call>",
        READ,
    ],
    ids=["fence", "fence behind words", "tag", "bare"],
)
async def test_a_model_that_prints_its_call_is_believed(cli: Cli, printed: str) -> None:
    pieces = [printed[at : at + 7] for at in range(0, len(printed), 7)]
    async with FakeServer(OPENAI.said(*pieces), OPENAI.said("x is one")) as server:
        choose(cli, OPENAI, server)
        done = await run(cli, "ask", "--json", "what is x?")
    assert (done.code, done.result["text"]) == (0, "x is one")
    assert results_of(done.lines) == [("read_file", "x = 1", False)]
    # The provider sees a call like any other.
    call, result = server.exchanges[1].json["messages"][-2:]
    assert call["tool_calls"][0]["function"]["name"] == "read_file"
    assert result["tool_call_id"] == call["tool_calls"][0]["id"]
    assert "read_file" in str(server.exchanges[0].json["tools"])


def served(form: str, *replies: Reply) -> FakeServer:
    return FakeServer(WITHOUT_TOOLS, *replies) if form == "text" else FakeServer(*replies)


@pytest.mark.parametrize("form", TEXT_FORMS)
async def test_a_call_in_the_models_thinking_never_runs(cli: Cli, form: str) -> None:
    case = TEXT_FORMS[form]
    reply = case.reply(case.wire.thought(f"I could say {TAGGED} or ```json\n{WRITE}\n```", "Done."))
    async with served(form, reply) as server:
        choose(cli, case, server)
        done = await run(cli, "--yes", "ask", "--json", "hi")
    assert (done.code, done.result["text"], results_of(done.lines)) == (0, "Done.", [])
    assert TAGGED in text_of(done.lines, "thinking")
    assert not (cli.workspace / "made.txt").exists()


@pytest.mark.parametrize("form", TEXT_FORMS)
async def test_nor_in_thinking_inside_the_text(cli: Cli, form: str) -> None:
    case = TEXT_FORMS[form]
    reply = case.said("<th", f"ink>I could say {TAGGED}", "</thi", "nk>", "Done.")
    async with served(form, reply) as server:
        choose(cli, case, server)
        done = await run(cli, "--yes", "ask", "--json", "hi")
    assert (done.code, done.result["text"], results_of(done.lines)) == (0, "Done.", [])
    assert "I could say" in text_of(done.lines, "thinking")
    assert not (cli.workspace / "made.txt").exists()


@pytest.mark.parametrize("form", TEXT_FORMS)
@pytest.mark.parametrize("quoted", [TAGGED, f"```json\n{WRITE}\n```", WRITE])
async def test_nor_in_thinking_that_never_ends(cli: Cli, form: str, quoted: str) -> None:
    case = TEXT_FORMS[form]
    async with served(form, case.said(f"<think>I could say\n{quoted}")) as server:
        choose(cli, case, server)
        done = await run(cli, "--yes", "ask", "--json", "hi")
    assert results_of(done.lines) == []
    assert not (cli.workspace / "made.txt").exists()
    assert len(case.asked(server)) == 1
    assert "Traceback" not in done.err


@pytest.mark.parametrize("form", TEXT_FORMS)
@pytest.mark.parametrize("cut", [True, False], ids=["cut", "no end mark"])
async def test_nor_from_a_reply_that_broke_off(cli: Cli, form: str, cut: bool) -> None:
    case = TEXT_FORMS[form]
    async with served(form, *[case.broken(TAGGED, cut=cut)] * 4) as server:
        choose(cli, case, server)
        done = await run(cli, "--yes", "ask", "--json", "hi")
    assert (done.code, results_of(done.lines)) == (1, [])
    assert not (cli.workspace / "made.txt").exists()


@pytest.mark.parametrize("form", TEXT_FORMS)
async def test_nor_from_a_reply_at_the_token_limit(cli: Cli, form: str) -> None:
    case = TEXT_FORMS[form]
    reply = case.reply(case.wire.cut(TAGGED))
    async with served(form, reply, reply) as server:
        choose(cli, case, server)
        done = await run(cli, "--yes", "ask", "--json", "hi")
    assert done.code == 1
    assert results_of(done.lines) == []
    assert not (cli.workspace / "made.txt").exists()


async def test_a_quoted_call_among_words_is_words(cli: Cli) -> None:
    said = f"To write a file, a model says:\n\n```json\n{WRITE}\n```\n\nThat is all."
    async with FakeServer(OPENAI.said(said)) as server:
        choose(cli, OPENAI, server)
        done = await run(cli, "--yes", "ask", "--json", "how?")
    assert (done.code, done.result["text"], results_of(done.lines)) == (0, said, [])
    assert not (cli.workspace / "made.txt").exists()
    assert KEY not in done.out
