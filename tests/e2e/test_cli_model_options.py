"""Settings of a model on their way into requests, and a function of the user's as the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.cli_process import Cli, Finished
from support.cli_providers import (
    CASE,
    CASES,
    KEY,
    Case,
    configure,
    results_of,
    run,
    shown,
    statuses_of,
)
from support.fake_server import Exchange, FakeServer

each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    made = Cli.below(tmp_path)
    made.write("a.py", "x = 1\n")
    return made


async def asked(cli: Cli, case: Case, settings: str, *flags: str) -> tuple[Finished, Exchange]:
    """One question to one provider."""
    configure(cli, settings)
    async with FakeServer(*case.first(), case.said("hi")) as server:
        cli.environment |= {"LLM_PROVIDER": case.name, **case.environment(server)}
        done = await run(cli, *flags, "ask", "--json", "hi")
    assert (done.code, done.err) == (0, ""), done
    return done, case.asked(server)[0]


# --- options ---------------------------------------------------------------------------------


async def test_a_temperature_that_is_refused_is_left_out_and_said_once(cli: Cli) -> None:
    case = CASE["openai"]
    configure(cli, "[llm]\ntemperature = 0.2\n")
    replies = [case.called("read_file", path="a.py"), case.said("one"), case.said("one")]
    async with FakeServer(*replies) as server:
        cli.environment |= {"LLM_PROVIDER": "openai", **case.environment(server)}
        done = await run(cli, "ask", "--json", "what is x?")
        plain = await run(cli, "ask", "what is x?")
    note = "gpt-6-luna does not take temperature: left out."
    assert statuses_of(done.lines, "warning") == [note]
    assert (plain.out, plain.err) == ("one\n", f"agentls: {note}\n")
    assert len(server.exchanges) == 3
    assert not any("temperature" in exchange.json for exchange in server.exchanges)


async def test_a_temperature_that_is_taken(cli: Cli) -> None:
    done, sent = await asked(
        cli, CASE["openai"], "[llm]\ntemperature = 0.2\ntop_p = 0.9\nseed = 7\n", "--model=gpt-4.1"
    )
    assert statuses_of(done.lines, "warning") == []
    assert [sent.json[key] for key in ("temperature", "top_p", "seed")] == [0.2, 0.9, 7]


async def test_a_temperature_above_the_models(cli: Cli) -> None:
    done, sent = await asked(
        cli, CASE["anthropic"], "[llm]\ntemperature = 1.5\n", "--model=claude-haiku-4-5"
    )
    assert statuses_of(done.lines, "warning") == [
        "claude-haiku-4-5 takes a temperature of at most 1: lowered to it."
    ]
    assert sent.json["temperature"] == 1


EFFORTS: dict[str, tuple[str, Any]] = {
    "anthropic": ("output_config", {"effort": "low"}),
    "openai": ("reasoning_effort", "low"),
    "openai-responses": ("reasoning.effort", "low"),
    "gemini": ("generationConfig.thinkingConfig.thinkingLevel", "low"),
    "groq": ("reasoning_effort", "low"),
    "deepseek": ("reasoning_effort", "low"),
    "ollama": ("think", True),
}


@each
async def test_effort(cli: Cli, case: Case) -> None:
    done, sent = await asked(cli, case, '[llm]\neffort = "low"\n')
    assert statuses_of(done.lines, "warning") == []
    path, expected = EFFORTS[case.name]
    value = sent.json
    for key in path.split("."):
        value = value[key]
    assert (value.lower() if isinstance(value, str) else value) == expected


@pytest.mark.parametrize(
    ("name", "model", "keys"),
    [
        ("anthropic", "claude-sonnet-5-5", ("stop_sequences",)),
        ("openai", "gpt-4.1", ("stop",)),
        ("gemini", "gemini-3.8-flash", ("generationConfig", "stopSequences")),
        ("groq", "openai/gpt-oss-120b", ("stop",)),
        ("deepseek", "deepseek-v4-flash", ("stop",)),
        ("ollama", "m", ("options", "stop")),
    ],
)
async def test_stop(cli: Cli, name: str, model: str, keys: tuple[str, ...]) -> None:
    done, sent = await asked(cli, CASE[name], '[llm]\nstop = ["END", "###"]\n', f"--model={model}")
    assert statuses_of(done.lines, "warning") == []
    value = sent.json
    for key in keys:
        value = value[key]
    assert value == ["END", "###"]


@pytest.mark.parametrize("name", ["openai", "openai-responses"])
async def test_stop_that_is_refused(cli: Cli, name: str) -> None:
    done, sent = await asked(cli, CASE[name], '[llm]\nstop = "END"\n')
    assert statuses_of(done.lines, "warning") == ["gpt-6-luna does not take stop: left out."]
    assert "stop" not in sent.json


MAX_TOKENS: dict[str, tuple[str, ...]] = {
    "anthropic": ("max_tokens",),
    "openai": ("max_tokens",),
    "openai-responses": ("max_output_tokens",),
    "gemini": ("generationConfig", "maxOutputTokens"),
    "groq": ("max_tokens",),
    "deepseek": ("max_tokens",),
    "ollama": ("options", "num_predict"),
}


def limit_of(case: Case, sent: Exchange) -> object:
    value = sent.json
    for key in MAX_TOKENS[case.name]:
        value = value.get(key, {})
    return value


@each
async def test_max_tokens(cli: Cli, case: Case) -> None:
    _, sent = await asked(cli, case, "[llm]\nmax_tokens = 1234\n")
    assert limit_of(case, sent) == 1234


@each
async def test_max_tokens_of_one_provider(cli: Cli, case: Case) -> None:
    section = case.name.removesuffix("-responses")
    _, sent = await asked(cli, case, f"[llm.{section}]\nmax_tokens = 1234\n")
    assert limit_of(case, sent) == 1234


async def test_max_tokens_above_the_models(cli: Cli) -> None:
    done, sent = await asked(cli, CASE["openai"], "[llm]\nmax_tokens = 50000\n", "--model=gpt-4.1")
    assert statuses_of(done.lines, "warning") == [
        "gpt-4.1 writes at most 32768 tokens: max_tokens was lowered to it."
    ]
    assert sent.json["max_tokens"] == 32_768


async def test_anthropics_own_variable(cli: Cli) -> None:
    cli.environment["ANTHROPIC_MAX_TOKENS"] = "1234"
    _, sent = await asked(cli, CASE["anthropic"], "")
    assert sent.json["max_tokens"] == 1234


async def test_anthropics_own_variable_above_the_models(cli: Cli) -> None:
    cli.environment["ANTHROPIC_MAX_TOKENS"] = "999999"
    done, sent = await asked(cli, CASE["anthropic"], "", "--model=claude-haiku-4-5")
    assert sent.json["max_tokens"] == 64_000
    assert statuses_of(done.lines, "warning") == [
        "claude-haiku-4-5 writes at most 64000 tokens: max_tokens was lowered to it."
    ]


async def test_a_variable_that_is_no_number_is_said(cli: Cli) -> None:
    cli.environment["ANTHROPIC_MAX_TOKENS"] = "many"
    case = CASE["anthropic"]
    async with FakeServer(case.said("hi")) as server:
        cli.environment |= {"LLM_PROVIDER": "anthropic", **case.environment(server)}
        done = await run(cli, "ask", "hi")
    assert (done.code, done.out) == (0, "hi\n")
    assert "llm.anthropic.max_tokens" in done.err


@each
async def test_headers_and_extra_body_go_through(cli: Cli, case: Case) -> None:
    section = case.name.removesuffix("-responses")
    _, sent = await asked(
        cli,
        case,
        f'[llm.{section}]\nheaders = {{ "X-Team" = "tools", "user-agent" = "mine/1" }}\n'
        'extra_body = { metadata = { user = "u1" }, stream = true, made_up = [1, 2] }\n',
    )
    assert sent.headers["x-team"] == "tools"
    assert sent.headers["user-agent"] == "mine/1"
    assert sent.json["metadata"] == {"user": "u1"}
    assert sent.json["made_up"] == [1, 2]
    assert KEY not in sent.body.decode()


async def test_headers_win_over_ours(cli: Cli) -> None:
    case = CASE["anthropic"]
    _, plain = await asked(cli, case, "")
    assert plain.headers["anthropic-version"] == "2023-06-01"
    _, sent = await asked(
        cli,
        case,
        '[llm.anthropic.headers]\n"Anthropic-Version" = "2099-01-01"\n"anthropic-beta" = "b-1"\n',
    )
    assert sent.headers["anthropic-version"] == "2099-01-01"
    assert sent.headers["anthropic-beta"] == "b-1"


async def test_extra_body_wins_over_the_requests_own_fields(cli: Cli) -> None:
    settings = "[llm]\nmax_tokens = 5\n[llm.openai.extra_body]\nmax_tokens = 99\n"
    _, sent = await asked(cli, CASE["openai"], settings)
    assert sent.json["max_tokens"] == 99


# --- Ollama's context ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "model_reads", "num_ctx"),
    [
        ("", 131_072, 16_384),
        ("", 2_048, 2_048),
        ("[llm.ollama]\ncontext_tokens = 40000\n", 131_072, 40_000),
        ("[llm.ollama]\ncontext_tokens = 40000\n", 32_768, 32_768),
    ],
)
async def test_num_ctx_is_sent(cli: Cli, settings: str, model_reads: int, num_ctx: int) -> None:
    configure(cli, settings)
    case = CASE["ollama"]
    async with FakeServer(shown(context_length=model_reads), case.said("hi")) as server:
        cli.environment |= {"LLM_PROVIDER": "ollama", **case.environment(server)}
        done = await run(cli, "ask", "hi")
    assert (done.code, done.out) == (0, "hi\n")
    assert server.exchanges[0].json == {"model": "m"}
    assert server.exchanges[1].json["options"]["num_ctx"] == num_ctx


async def test_keep_alive(cli: Cli) -> None:
    _, sent = await asked(cli, CASE["ollama"], '[llm.ollama]\nkeep_alive = "30m"\n')
    assert sent.json["keep_alive"] == "30m"


# --- a function of the user's ----------------------------------------------------------------

FUNCTION = """
from agentls.core.messages import ToolCall, ToolResult

def answer(question: str):
    yield "You asked: "
    yield question

async def act(request):
    last = request.items[-1]
    if isinstance(last, ToolResult):
        yield f"It says {last.content}."
    else:
        yield ToolCall(call_id="c1", name="read_file", arguments={"path": "a.py"})

def fail(question: str) -> str:
    raise RuntimeError("no luck today")
"""


def with_function(cli: Cli, tmp_path: Path, place: str) -> None:
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "my_model.py").write_text(FUNCTION)
    paths = filter(None, (str(folder), cli.environment.get("PYTHONPATH", "")))
    cli.environment["PYTHONPATH"] = ":".join(paths)
    configure(cli, f'[llm]\nprovider = "custom"\n[llm.custom]\nfunction = "{place}"\n')


async def test_a_function_answers(cli: Cli, tmp_path: Path) -> None:
    with_function(cli, tmp_path, "my_model:answer")
    done = await run(cli, "ask", "why?")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("You asked: ")
    assert "why?" in done.out


async def test_a_function_calls_tools(cli: Cli, tmp_path: Path) -> None:
    with_function(cli, tmp_path, "my_model:act")
    done = await run(cli, "ask", "--json", "what is x?")
    assert (done.code, done.result["text"]) == (0, "It says x = 1.")
    assert results_of(done.lines) == [("read_file", "x = 1", False)]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("my_model:fail", "no luck today"),
        ("my_model:nothing", "my_model"),
        ("no_such_module:answer", "no_such_module"),
        ("my_model", "my_model"),
    ],
)
async def test_a_function_that_cannot(cli: Cli, tmp_path: Path, place: str, words: str) -> None:
    with_function(cli, tmp_path, place)
    done = await run(cli, "ask", "why?")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("agentls: error: ")
    assert words in done.err
    assert "Traceback" not in done.err


async def test_a_workspace_cannot_name_a_function(cli: Cli, tmp_path: Path) -> None:
    with_function(cli, tmp_path, "")
    configure(cli, "")
    cli.environment["LLM_PROVIDER"] = "custom"
    cli.write("evil.py", "open('ran', 'w').close()\n")
    cli.write(".agentls/config.toml", '[llm.custom]\nfunction = "evil:answer"\n')
    done = await run(cli, "ask", "why?")
    assert done.code == 1
    assert "llm.custom.function was ignored" in done.err
    assert not (cli.workspace / "ran").exists()
