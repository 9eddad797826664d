"""A pool of providers as a user has it: the command, and a server for each member."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from support.cli_process import Cli
from support.cli_providers import (
    CASE,
    KEY,
    called_back,
    configure,
    model_of,
    overloaded,
    refusal,
    results_of,
    run,
    shown,
    statuses_of,
    text_of,
)
from support.fake_server import FakeServer

ANTHROPIC, OPENAI, OLLAMA = CASE["anthropic"], CASE["openai"], CASE["ollama"]
LISTED = '[llm]\npool = ["anthropic", "openai"]\norder = "listed"\n'
A_NAME, O_NAME = "anthropic (claude-sonnet-5-5)", "openai (gpt-6-luna)"
A_DOWN = "anthropic answered 529 (overloaded): Overloaded."

Servers = tuple[FakeServer, FakeServer]


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    """Anthropic's and OpenAI's; a test queues what they say."""
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(FakeServer())
        two = await stack.enter_async_context(FakeServer())
        yield one, two


@pytest.fixture
def cli(tmp_path: Path, servers: Servers) -> Cli:
    made = Cli.below(tmp_path)
    made.write("a.py", "x = 1\n")
    made.environment |= ANTHROPIC.environment(servers[0]) | OPENAI.environment(servers[1])
    return made


def requests(servers: Servers) -> tuple[int, int]:
    return len(servers[0].exchanges), len(servers[1].exchanges)


@pytest.mark.parametrize("flags", [[], ["--json"]])
async def test_when_one_is_overloaded_the_next_answers(
    cli: Cli, servers: Servers, flags: list[str]
) -> None:
    anthropic, openai = servers
    configure(cli, LISTED)
    anthropic.replies.append(overloaded())
    openai.replies.append(OPENAI.said("hi"))
    done = await run(cli, "ask", *flags, "hello?")
    switch = f"{A_DOWN} Trying {O_NAME}."
    assert done.code == 0
    if flags:
        assert statuses_of(done.lines, "switching") == [switch]
        assert statuses_of(done.lines, "retrying") == []
        assert (done.result["text"], done.err) == ("hi", "")
        assert done.result["usage"]["cost_usd"] == pytest.approx(OPENAI.cost_usd(7, 3))
    else:
        assert (done.out, done.err) == ("hi\n", f"agentls: {switch}\n")
    assert requests(servers) == (1, 1)
    assert anthropic.exchanges[0].headers["x-api-key"] == KEY
    assert openai.exchanges[0].headers["authorization"] == f"Bearer {KEY}"


async def test_by_the_environment_and_at_random_both_are_asked_first(
    cli: Cli, servers: Servers
) -> None:
    cli.environment["LLM_POOL"] = "anthropic, openai"
    firsts = set()
    for seed in range(8):
        configure(cli, f"[llm]\npool_seed = {seed}\n")
        answers = []
        for _ in range(2):
            servers[0].replies.append(ANTHROPIC.said("from anthropic"))
            servers[1].replies.append(OPENAI.said("from openai"))
            done = await run(cli, "ask", "hi")
            assert (done.code, done.err) == (0, "")
            answers.append(done.out)
            for server in servers:
                server.replies.clear()
        assert answers[0] == answers[1]  # a seed makes it repeatable
        firsts.add(answers[0])
        if len(firsts) == 2:
            break
    assert firsts == {"from anthropic\n", "from openai\n"}


async def test_a_wrong_request_is_not_sent_to_others(cli: Cli, servers: Servers) -> None:
    configure(cli, LISTED)
    servers[0].replies.append(refusal(400, "messages: roles must alternate"))
    done = await run(cli, "ask", "--json", "hi")
    assert done.code == 1
    error = done.result["error"]
    assert (error["code"], error["provider"], error["status"]) == ("bad_request", "anthropic", 400)
    assert requests(servers) == (1, 0)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "invalid x-api-key"),
        (403, "Your account may not use this model."),
        (404, "model: claude-sonnet-5-5 not found"),
        (429, "Rate limited."),
        (400, "Your credit balance is too low to access the API."),
        (400, "prompt is too long: 200001 tokens > 200000 maximum"),
        (500, "Internal server error"),
    ],
)
async def test_what_is_one_members_own_fault_is_sent_on(
    cli: Cli, servers: Servers, status: int, words: str
) -> None:
    configure(cli, LISTED)
    servers[0].replies.append(refusal(status, words))
    servers[1].replies.append(OPENAI.said("hi"))
    done = await run(cli, "ask", "hi")
    assert (done.code, done.out, requests(servers)) == (0, "hi\n", (1, 1))
    assert f"anthropic answered {status}" in done.err
    assert f"Trying {O_NAME}." in done.err


async def test_all_gone_names_all(cli: Cli, servers: Servers) -> None:
    configure(cli, LISTED)
    servers[0].replies.extend([overloaded()] * 2)
    servers[1].replies.extend([refusal(503, f"Down, {KEY}.")] * 2)
    done = await run(cli, "ask", "hi")
    assert (done.code, done.out) == (1, "")
    *steps, error, hint = done.err.strip().split("\n")
    o_down = "openai answered 503 (service unavailable): Down, "
    assert [step.split(" Trying ")[1] for step in steps] == [
        f"{O_NAME}.",
        f"{A_NAME} again in 0.0 s (attempt 2 of 2).",
        f"{O_NAME} again in 0.0 s (attempt 2 of 2).",
    ]
    assert error.startswith("agentls: error: None of 2 models could answer. ")
    assert f"{A_NAME} answered 529 (overloaded): Overloaded." in error
    assert o_down.replace("openai", O_NAME) in error
    assert "try again later" in hint
    assert KEY not in done.err
    assert requests(servers) == (2, 2)


async def test_all_gone_for_programs(cli: Cli, servers: Servers) -> None:
    configure(cli, LISTED)
    servers[0].replies.append(refusal(401, "invalid x-api-key"))
    servers[1].replies.extend([overloaded()] * 2)
    done = await run(cli, "ask", "--json", "hi")
    error = done.result["error"]
    # The failure that may pass says what to do; the text has both.
    assert (done.code, error["status"], error["retryable"]) == (1, 529, True)
    assert error["provider"] == "openai"
    assert f"{A_NAME} answered 401" in error["message"]
    assert f"{O_NAME} answered 529" in error["message"]
    assert requests(servers) == (1, 2)


async def test_keys_that_are_all_wrong_are_tried_once_each(cli: Cli, servers: Servers) -> None:
    configure(cli, LISTED)
    for server in servers:
        server.replies.extend([refusal(401, f"Wrong key {KEY}")] * 2)
    done = await run(cli, "ask", "--json", "hi")
    assert (done.code, requests(servers)) == (1, (1, 1))
    error = done.result["error"]
    assert (error["code"], error["status"], error["retryable"]) == ("unauthorized", 401, False)
    assert A_NAME in error["message"]
    assert O_NAME in error["message"]
    assert KEY not in done.out + done.err


async def test_a_member_without_its_key_is_an_error(cli: Cli, servers: Servers) -> None:
    configure(cli, LISTED)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        del cli.environment[name]
    done = await run(cli, "ask", "hi")
    assert (done.code, done.out) == (1, "")
    assert "agentls: error: openai needs a key and none is set." in done.err
    assert "OPENAI_API_KEY" in done.err
    assert requests(servers) == (0, 0)


@pytest.mark.parametrize("entry", ["nonesuch", "/x", "auto"])
async def test_entries_that_name_no_provider(cli: Cli, servers: Servers, entry: str) -> None:
    cli.environment["LLM_POOL"] = f"anthropic,{entry}"
    done = await run(cli, "ask", "hi")
    assert (done.code, done.out, requests(servers)) == (1, "", (0, 0))
    name = entry.partition("/")[0]
    assert f"agentls: error: There is no provider named {name!r}." in done.err


@pytest.mark.parametrize("pool", ["anthropic/", "anthropic,", " , anthropic"])
async def test_entries_of_nothing_are_none(cli: Cli, servers: Servers, pool: str) -> None:
    cli.environment["LLM_POOL"] = pool
    servers[0].replies.append(ANTHROPIC.said("hi"))
    done = await run(cli, "ask", "hi")
    assert (done.code, done.out, done.err) == (0, "hi\n", "")
    assert model_of(servers[0].exchanges[0]) == ANTHROPIC.model


async def test_a_member_may_name_its_model(cli: Cli, servers: Servers) -> None:
    configure(cli, '[llm]\norder = "listed"\n')
    cli.environment["LLM_POOL"] = "anthropic/claude-haiku-4-5,openai/vendor/model:tag"
    servers[0].replies.append(overloaded())
    servers[1].replies.append(OPENAI.said("hi"))
    done = await run(cli, "ask", "hi")
    assert (done.code, done.out) == (0, "hi\n")
    assert [model_of(server.exchanges[0]) for server in servers] == [
        "claude-haiku-4-5",
        "vendor/model:tag",
    ]
    assert "Trying openai (vendor/model:tag)." in done.err


async def test_one_provider_twice(cli: Cli, servers: Servers) -> None:
    configure(cli, '[llm]\norder = "listed"\npool = "openai/one, openai-responses/two"\n')
    servers[1].replies.extend([overloaded(), CASE["openai-responses"].said("hi")])
    done = await run(cli, "ask", "hi")
    assert (done.code, done.out) == (0, "hi\n")
    assert [e.path for e in servers[1].exchanges] == ["/v1/chat/completions", "/v1/responses"]
    assert "Trying openai-responses (two)." in done.err


async def test_a_provider_that_is_chosen_wins(cli: Cli, servers: Servers) -> None:
    configure(cli, LISTED)
    servers[1].replies.append(OPENAI.said("hi"))
    cli.environment["LLM_PROVIDER"] = "openai"
    done = await run(cli, "ask", "hi")
    assert (done.code, done.out, requests(servers)) == (0, "hi\n", (0, 1))


async def test_the_history_goes_over_without_the_others_thinking(
    cli: Cli, servers: Servers
) -> None:
    configure(cli, LISTED)
    thinking = ANTHROPIC.wire.frames(ANTHROPIC.wire.thought("Secret thought.", "I will look."))
    call = ANTHROPIC.wire.frames(ANTHROPIC.wire.called(("call_1", "read_file", {"path": "a.py"})))
    body = b"".join(thinking[:-2]) + b"".join(call[1:]).replace(b'"index": 0', b'"index": 2')
    servers[0].replies.extend([ANTHROPIC.reply(body), overloaded()])
    servers[1].replies.append(OPENAI.said("x is one"))
    done = await run(cli, "ask", "--json", "what is x?")
    assert (done.code, done.result["text"]) == (0, "x is one")
    assert text_of(done.lines, "thinking") == "Secret thought."
    assert results_of(done.lines) == [("read_file", "x = 1", False)]
    sent = servers[1].exchanges[0]
    name, arguments, content = called_back("openai_chat", sent.json)
    assert (name, arguments) == ("read_file", {"path": "a.py"})
    assert "x = 1" in content
    assert "I will look." in sent.body.decode()
    assert "Secret thought." not in sent.body.decode()
    cost = (ANTHROPIC.cost_usd(7, 3) or 0) + (OPENAI.cost_usd(7, 3) or 0)
    assert done.result["usage"]["cost_usd"] == pytest.approx(cost)


async def test_a_reply_that_breaks_off_is_gone_on_with_by_another(
    cli: Cli, servers: Servers
) -> None:
    configure(cli, LISTED)
    servers[0].replies.append(ANTHROPIC.broken("One ", cut=True))
    servers[1].replies.append(OPENAI.said("two"))
    done = await run(cli, "ask", "--json", "hi")
    assert (done.code, done.result["text"]) == (0, "One two")
    assert statuses_of(done.lines, "switching") == [
        f"The reply of {A_NAME} broke off. Trying {O_NAME}."
    ]
    assert requests(servers) == (1, 1)


async def test_a_local_ollama_as_the_last_resort(cli: Cli, servers: Servers) -> None:
    configure(cli, '[llm]\norder = "listed"\npool = ["openai", "ollama/m"]\n')
    servers[1].replies.append(overloaded())
    async with FakeServer(shown(), OLLAMA.said("hi")) as ollama:
        cli.environment["OLLAMA_HOST"] = ollama.url
        done = await run(cli, "ask", "--json", "hi")
    assert (done.code, done.result["text"]) == (0, "hi")
    assert [exchange.path for exchange in ollama.exchanges] == ["/api/show", "/api/chat"]
    assert done.result["usage"]["cost_usd"] is None


async def test_an_ollama_that_is_not_running_does_not_stop_the_others(
    cli: Cli, servers: Servers
) -> None:
    configure(cli, '[llm]\norder = "listed"\npool = ["ollama/m", "openai"]\n')
    servers[1].replies.append(OPENAI.said("hi"))
    done = await run(cli, "ask", "hi")
    assert (done.code, done.out) == (0, "hi\n")
