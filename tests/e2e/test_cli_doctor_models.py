"""`agentls doctor` and `agentls model refresh` against servers of the providers' formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from support.cli_process import Cli, Finished, closed_port
from support.cli_providers import (
    CASE,
    HOSTED,
    KEY,
    Case,
    configure,
    document,
    overloaded,
    refusal,
    run,
    shown,
)
from support.fake_server import FakeServer, Reply, refused

each_hosted = pytest.mark.parametrize("case", HOSTED, ids=lambda case: case.name)
ANTHROPIC, OPENAI, GEMINI, OLLAMA = (
    CASE[name] for name in ("anthropic", "openai", "gemini", "ollama")
)
LIST_PATHS = {
    "anthropic": "/v1/models?limit=1000",
    "openai": "/v1/models",
    "openai-responses": "/v1/models",
    "gemini": "/v1beta/models?pageSize=1000",
    "groq": "/openai/v1/models",
    "deepseek": "/v1/models",
}
CHECKS = ["key", "model present", "request", "context", "tool calls"]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli.below(tmp_path)


def listed(case: Case, *names: str) -> Reply:
    """The provider's list of models, with nothing but names."""
    if case.name == "gemini":
        methods: JsonValue = ["generateContent", "countTokens"]
        models: list[JsonValue] = [
            {"name": f"models/{name}", "supportedGenerationMethods": methods} for name in names
        ]
        return document({"models": models})
    entries: list[JsonValue] = [{"id": name, "object": "model", "type": "model"} for name in names]
    return document({"object": "list", "data": entries, "has_more": False})


def good(case: Case) -> list[Reply]:
    """Answers to the request and to the tool that is offered."""
    return [case.said("rea", "dy"), case.called("report_ready", word="ready")]


async def diagnosed(cli: Cli, *flags: str) -> tuple[Finished, dict[str, Any]]:
    """The run, and its checks of models by name."""
    done = await run(cli, "doctor", "--json", *flags)
    assert done.err == ""
    assert KEY not in done.out
    *checks, result = done.lines
    for check in checks:
        assert check.pop("type") == "check"
        assert set(check) == {"name", "state", "detail", "next"}
    failed = [check["name"] for check in checks if check["state"] == "failed"]
    assert result == {"type": "result", "ok": not failed, "failed": failed}
    assert done.code == (1 if failed else 0)
    return done, {check["name"]: check for check in checks}


def choose(cli: Cli, case: Case, server: FakeServer | str) -> None:
    cli.environment |= {"LLM_PROVIDER": case.name, **case.environment(server)}


# --- doctor ----------------------------------------------------------------------------------


@each_hosted
async def test_all_is_well(cli: Cli, case: Case) -> None:
    async with FakeServer(listed(case, "another", case.model), *good(case)) as server:
        choose(cli, case, server)
        _, checks = await diagnosed(cli)
    assert {name: checks[name]["state"] for name in ["model", *CHECKS]} == dict.fromkeys(
        ["model", *CHECKS], "ok"
    )
    assert f"{case.model} from {case.name}" in checks["model"]["detail"]
    assert checks["key"]["detail"] == "set"
    assert checks["model present"]["detail"] == f"{case.model} is one of 2 in the list"
    assert "first token after" in checks["request"]["detail"]
    assert checks["context"]["detail"].split(" ")[0].isdecimal()
    assert checks["tool calls"]["detail"] == "by itself; it called one"
    sent = [(exchange.method, exchange.path) for exchange in server.exchanges]
    path = next(iter(case.paths.values()))
    assert sent == [("GET", LIST_PATHS[case.name]), ("POST", path), ("POST", path)]
    assert {exchange.headers[case.key[0]] for exchange in server.exchanges} == {case.key[1]}
    assert "report_ready" in server.exchanges[2].body.decode()


async def test_for_people(cli: Cli) -> None:
    async with FakeServer(listed(OPENAI, "gpt-6-luna"), *good(OPENAI)) as server:
        choose(cli, OPENAI, server)
        done = await run(cli, "doctor")
    assert (done.code, done.err) == (0, "")
    for line in (
        "✓ model: gpt-6-luna from openai: openai is the chosen provider",
        "✓ key: set",
        "✓ model present: gpt-6-luna is one of 1 in the list",
        "✓ context: 922000 tokens; writes at most 128000",
        "✓ tool calls: by itself; it called one",
    ):
        assert f"{line}\n" in done.out
    assert KEY not in done.out


async def test_an_ollama(cli: Cli) -> None:
    async with FakeServer(shown(), *good(OLLAMA)) as server:
        choose(cli, OLLAMA, server)
        _, checks = await diagnosed(cli)
    assert {checks[name]["state"] for name in ["model", *CHECKS]} == {"ok"}
    assert checks["context"]["detail"].startswith("16384 tokens")


async def test_a_model_that_is_not_in_the_list(cli: Cli) -> None:
    reply = listed(OPENAI, "gpt-6-sol", "gpt-6-luna", "whisper-2")
    async with FakeServer(reply, refusal(404, "no such model"), *good(OPENAI)) as server:
        choose(cli, OPENAI, server)
        _, checks = await diagnosed(cli, "--model", "gpt-6-lune")
    present = checks["model present"]
    assert present["detail"] == "gpt-6-lune is not among the 3 listed"
    assert present["next"].startswith("Did you mean gpt-6-luna")
    assert "whisper-2" not in present["next"]
    assert checks["request"]["state"] == "failed"
    assert "404" in checks["request"]["detail"]


@each_hosted
async def test_a_wrong_key(cli: Cli, case: Case) -> None:
    async with FakeServer(*[refusal(401, f"Wrong key {KEY}")] * 3) as server:
        choose(cli, case, server)
        _, checks = await diagnosed(cli)
    assert "401" in checks["model present"]["detail"]
    assert checks["request"]["state"] == "failed"
    assert f"{case.name} answered 401" in checks["request"]["detail"]
    assert f"{case.variable}_API_KEY" in checks["request"]["next"]
    assert len(server.exchanges) == 2  # no tool is offered to who does not answer


@each_hosted
async def test_no_key(cli: Cli, case: Case) -> None:
    cli.environment["LLM_PROVIDER"] = case.name
    _, checks = await diagnosed(cli)
    assert checks["model"]["state"] == "failed"
    assert checks["model"]["detail"] == f"{case.name} needs a key and none is set."
    assert f"{case.variable}_API_KEY" in checks["model"]["next"]
    assert "request" not in checks


async def test_unreachable(cli: Cli) -> None:
    choose(cli, ANTHROPIC, f"http://127.0.0.1:{closed_port()}")
    _, checks = await diagnosed(cli)
    assert checks["model present"]["state"] == "note"
    assert checks["request"]["state"] == "failed"
    assert "anthropic" in checks["request"]["detail"]
    assert "127.0.0.1" in checks["request"]["detail"] + checks["request"]["next"]


@pytest.mark.parametrize("reply", [refused(404), document([]), document({"ok": True})])
async def test_a_server_without_a_list(cli: Cli, reply: Reply) -> None:
    async with FakeServer(reply, *good(OPENAI)) as server:
        choose(cli, OPENAI, server)
        _, checks = await diagnosed(cli)
    assert checks["model present"]["state"] == "note"
    assert checks["request"]["state"] == checks["tool calls"]["state"] == "ok"


async def test_a_model_that_calls_no_tool(cli: Cli) -> None:
    replies = [listed(OPENAI, "gpt-6-luna"), OPENAI.said("ready"), OPENAI.said("I am ready.")]
    async with FakeServer(*replies) as server:
        choose(cli, OPENAI, server)
        _, checks = await diagnosed(cli)
    assert checks["tool calls"]["state"] == "note"
    assert "did not call one" in checks["tool calls"]["detail"]
    assert 'tool_calling = "text"' in checks["tool calls"]["next"]


async def test_each_member_of_a_pool(cli: Cli) -> None:
    configure(cli, '[llm]\norder = "listed"\n')
    one = FakeServer(listed(ANTHROPIC, ANTHROPIC.model), *good(ANTHROPIC))
    two = FakeServer(listed(OPENAI, "gpt-6-luna"), overloaded(), overloaded())
    async with one, two:
        cli.environment |= ANTHROPIC.environment(one) | OPENAI.environment(two)
        cli.environment["LLM_POOL"] = "anthropic,openai"
        _, checks = await diagnosed(cli)
    states = {name: check["state"] for name, check in checks.items()}
    assert [states[f"anthropic {name}"] for name in CHECKS] == ["ok"] * 5
    assert [states[f"openai {name}"] for name in CHECKS[:3]] == ["ok", "ok", "failed"]
    assert "openai answered 529" in checks["openai request"]["detail"]
    assert "anthropic, openai from pool" in checks["model"]["detail"]


async def test_members_of_one_provider_are_told_apart(cli: Cli) -> None:
    configure(cli, '[llm]\norder = "listed"\npool = ["openai/gpt-6-sol", "openai/gpt-6-luna"]\n')
    names = ("gpt-6-sol", "gpt-6-luna")
    replies = [reply for _ in names for reply in (listed(OPENAI, *names), *good(OPENAI))]
    async with FakeServer(*replies) as server:
        cli.environment |= OPENAI.environment(server)
        done, _ = await diagnosed(cli)
    checks = [line["name"] for line in done.lines if line["type"] == "check"]
    of_members = [name for name in checks if name.endswith(tuple(CHECKS))]
    assert len(set(of_members)) == len(of_members) == 2 * len(CHECKS)


async def test_geminis_long_names(cli: Cli) -> None:
    async with FakeServer(listed(GEMINI, GEMINI.model), *good(GEMINI)) as server:
        choose(cli, GEMINI, server)
        cli.environment["GEMINI_MODEL"] = f"models/{GEMINI.model}"
        _, checks = await diagnosed(cli)
    assert [checks[name]["state"] for name in CHECKS] == ["ok"] * 5


# --- model refresh ---------------------------------------------------------------------------

ANTHROPICS: JsonValue = {
    "data": [
        {
            "id": "claude-made-up",
            "type": "model",
            "max_input_tokens": 123_456,
            "max_tokens": 7_777,
            "capabilities": {"image_input": {"supported": False}},
        },
        {"id": "claude-sonnet-5-5", "type": "model"},
    ],
    "has_more": False,
}


def kept(cli: Cli) -> Any:
    path = cli.home / ".cache" / "agentls" / "models.json"
    return json.loads(path.read_text()) if path.exists() else None


async def test_what_a_provider_tells_is_used_afterwards(cli: Cli) -> None:
    replies = [document(ANTHROPICS), document(ANTHROPICS), *good(ANTHROPIC)]
    async with FakeServer(*replies) as server:
        choose(cli, ANTHROPIC, server)
        done = await run(cli, "model", "refresh", "anthropic")
        assert (done.code, done.err) == (0, "")
        assert done.out == "anthropic: 2 models, 1 with the context size\n"
        _, checks = await diagnosed(cli, "--model", "claude-made-up")
    assert server.exchanges[0].path == LIST_PATHS["anthropic"]
    assert server.exchanges[0].headers["x-api-key"] == KEY
    assert checks["context"]["detail"] == "123456 tokens; writes at most 7777"
    assert kept(cli)["anthropic"]["claude-made-up"]["context_window"] == 123_456
    assert KEY not in json.dumps(kept(cli))


async def test_geminis_list_and_its_pages(cli: Cli) -> None:
    pages: list[JsonValue] = [
        {"models": [{"name": "models/gemini-a", "inputTokenLimit": 1000}], "nextPageToken": "p 2"},
        {"models": [{"name": "models/gemini-b", "outputTokenLimit": 9}]},
    ]
    async with FakeServer(*map(document, pages)) as server:
        cli.environment |= GEMINI.environment(server)
        done = await run(cli, "model", "refresh", "gemini", "--json")
    provider, result = done.lines
    assert provider == {
        "type": "provider",
        "provider": "gemini",
        "models": ["gemini-a", "gemini-b"],
    }
    assert (done.code, result) == (0, {"type": "result", "ok": True})
    second = server.exchanges[1].path
    assert second.startswith("/v1beta/models?")
    assert "pageSize=1000" in second
    assert "pageToken=p%202" in second or "pageToken=p+2" in second


async def test_without_a_name_all_with_a_key_are_asked(cli: Cli) -> None:
    one, two = FakeServer(document(ANTHROPICS)), FakeServer(listed(OPENAI, "gpt-6-luna"))
    async with one, two:
        cli.environment |= ANTHROPIC.environment(one) | OPENAI.environment(two)
        done = await run(cli, "model", "refresh")
    assert (done.code, done.err) == (0, "")
    assert done.out.split("\n") == [
        "anthropic: 2 models, 1 with the context size",
        "openai: 1 model, 0 with the context size",
        "",
    ]
    assert set(kept(cli)) == {"anthropic", "openai"}


@pytest.mark.parametrize(
    "broken",
    [
        refusal(401, f"Wrong key {KEY}"),
        refused(404),
        document({"models": "many"}),
        Reply([b"<html>not json"]),
        Reply([b'{"data": [']),
    ],
    ids=["401", "404", "no list", "markup", "half"],
)
async def test_a_broken_answer_keeps_what_was_known(cli: Cli, broken: Reply) -> None:
    async with FakeServer(document(ANTHROPICS), broken, listed(OPENAI, "gpt-6-luna")) as server:
        cli.environment |= ANTHROPIC.environment(server)
        await run(cli, "model", "refresh", "anthropic")
        before = kept(cli)
        cli.environment |= OPENAI.environment(server)
        done = await run(cli, "model", "refresh", "--json")
    first, second, result = done.lines
    assert done.code == 1
    assert first["provider"] == "anthropic"
    assert "anthropic" in first["error"]
    assert second == {"type": "provider", "provider": "openai", "models": ["gpt-6-luna"]}
    assert result == {"type": "result", "ok": False}
    assert kept(cli) == {**before, "openai": {"gpt-6-luna": {}}}
    assert KEY not in done.out + done.err
    assert "Traceback" not in done.err


@each_hosted
async def test_refresh_without_a_key(cli: Cli, case: Case) -> None:
    async with FakeServer() as proxy:
        cli.environment["HTTPS_PROXY"] = proxy.url
        named = await run(cli, "model", "refresh", case.name)
        unnamed = await run(cli, "model", "refresh")
    assert proxy.connections == 0
    assert named.code == 1
    assert f"{case.variable}_API_KEY" in named.out + named.err
    assert unnamed.code == 2
    assert "No provider has a key." in unnamed.err


async def test_refresh_with_a_key_in_the_keyring(cli: Cli, tmp_path: Path) -> None:
    cli.environment |= {
        "PYTHON_KEYRING_BACKEND": "keyrings.alt.file.PlaintextKeyring",
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }
    assert cli.run("key", "set", "anthropic", stdin=KEY.encode()).code == 0
    async with FakeServer() as proxy:
        cli.environment["HTTPS_PROXY"] = proxy.url
        named = await run(cli, "model", "refresh", "anthropic")
        unnamed = await run(cli, "model", "refresh")
    asked = [(exchange.method, exchange.path) for exchange in proxy.exchanges]
    assert asked == [("CONNECT", "api.anthropic.com:443")] * 2
    assert (named.code, unnamed.code) == (1, 1)
    assert KEY not in named.out + named.err + unnamed.out + unnamed.err


async def test_a_key_of_the_keyring_goes_to_its_provider_alone(cli: Cli, tmp_path: Path) -> None:
    cli.environment |= {
        "PYTHON_KEYRING_BACKEND": "keyrings.alt.file.PlaintextKeyring",
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }
    assert cli.run("key", "set", "anthropic", stdin=KEY.encode()).code == 0
    async with FakeServer(document(ANTHROPICS)) as server:
        cli.environment["ANTHROPIC_BASE_URL"] = server.url
        await run(cli, "model", "refresh", "anthropic")
    assert [KEY in str(exchange.headers) for exchange in server.exchanges] == [False]


@pytest.mark.parametrize("name", ["ollama", "local", "scripted", "nonesuch"])
async def test_refresh_of_what_has_no_list(cli: Cli, name: str) -> None:
    done = await run(cli, "model", "refresh", name)
    assert done.code in (1, 2)
    assert done.err.startswith("agentls: error: ")
    assert name in done.err


async def test_a_file_of_facts_that_is_damaged_does_no_harm(cli: Cli) -> None:
    path = cli.home / ".cache" / "agentls" / "models.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"openai": {"gpt-6-luna": {"context_window": "much"}}')
    async with FakeServer(OPENAI.said("hi"), listed(OPENAI, "gpt-6-luna")) as server:
        choose(cli, OPENAI, server)
        done = await run(cli, "ask", "hi")
        assert (done.code, done.out) == (0, "hi\n")
        assert (await run(cli, "model", "refresh")).code == 0
    assert kept(cli) == {"openai": {"gpt-6-luna": {}}}
