"""Every provider as a user meets it: the command as a process, a server that speaks its format."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from support.cli_process import Cli, closed_port
from support.cli_providers import (
    CASE,
    CASES,
    HOSTED,
    KEY,
    Case,
    called_back,
    model_of,
    overloaded,
    refusal,
    results_of,
    run,
    statuses_of,
    text_of,
)
from support.fake_server import FakeServer, refused

each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
each_hosted = pytest.mark.parametrize("case", HOSTED, ids=lambda case: case.name)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    made = Cli.below(tmp_path)
    made.write("a.py", "x = 1\n")
    return made


def choose(cli: Cli, case: Case, server: FakeServer | str, base: str | None = None) -> None:
    cli.environment |= {"LLM_PROVIDER": case.name, **case.environment(server, base)}


# --- what works ------------------------------------------------------------------------------


@each
async def test_a_turn_with_thinking_and_a_tool(cli: Cli, case: Case) -> None:
    replies = [
        case.called("read_file", path="a.py"),
        case.reply(case.wire.thought("Let me see.", "x is one.")),
    ]
    async with FakeServer(*case.first(), *replies) as server:
        choose(cli, case, server)
        done = await run(cli, "ask", "--json", "what is x?")
    assert (done.code, done.err) == (0, "")
    assert text_of(done.lines, "thinking") == "Let me see."
    assert text_of(done.lines, "text") == done.result["text"] == "x is one."
    assert results_of(done.lines) == [("read_file", "x = 1", False)]
    result = done.result
    cost = result["usage"].pop("cost_usd")
    assert cost == (None if case.dollars is None else pytest.approx(case.cost_usd(14, 6)))
    assert result == {
        "type": "result",
        "stopReason": "end_turn",
        "text": "x is one.",
        "usage": {
            "input_tokens": 14,
            "output_tokens": 6,
            "cache_read_tokens": 0,
            "cache_creation_tokens": 0,
            "reasoning_tokens": 0,
        },
        "sessionId": result["sessionId"],
        "files": [],
    }
    first, second = case.asked(server)
    path = next(iter(case.paths.values()))
    header, value = case.key
    for exchange in (first, second):
        assert (exchange.method, exchange.path) == ("POST", path)
        assert exchange.headers.get(header, "") == value
        assert KEY not in exchange.body.decode()
        assert model_of(exchange) == case.model
    assert "what is x?" in first.body.decode()
    name, arguments, content = called_back(case.wire.name, second.json)
    assert (name, arguments) == ("read_file", {"path": "a.py"})
    assert "x = 1" in content


@pytest.mark.parametrize(
    ("case", "base"),
    [(case, base) for case in CASES for base in list(case.paths)[1:]],
    ids=lambda value: value.name if isinstance(value, Case) else value or "bare",
)
async def test_a_base_url_with_and_without_the_version(cli: Cli, case: Case, base: str) -> None:
    async with FakeServer(*case.first(), case.said("hi")) as server:
        choose(cli, case, server, base)
        done = await run(cli, "ask", "hi")
    assert (done.code, done.out, done.err) == (0, "hi\n", "")
    assert [exchange.path for exchange in case.asked(server)] == [case.paths[base]]


@each
async def test_the_model_is_the_one_that_is_named(cli: Cli, case: Case) -> None:
    replies = [*case.first(), case.said("1"), *case.first(), case.said("2")]
    async with FakeServer(*replies) as server:
        choose(cli, case, server)
        cli.environment[f"{case.variable}_MODEL"] = "by-variable"
        assert (await run(cli, "ask", "hi")).out == "1\n"
        assert (await run(cli, "--model", "by-flag", "ask", "hi")).out == "2\n"
    assert [model_of(exchange) for exchange in case.asked(server)] == ["by-variable", "by-flag"]


async def test_googles_own_name_for_its_key(cli: Cli) -> None:
    case = CASE["gemini"]
    async with FakeServer(case.said("1"), case.said("2")) as server:
        choose(cli, case, server)
        cli.environment["GOOGLE_API_KEY"] = "other-key-0123456789"
        await run(cli, "ask", "hi")
        del cli.environment["GEMINI_API_KEY"]
        await run(cli, "ask", "hi")
    keys = [exchange.headers["x-goog-api-key"] for exchange in server.exchanges]
    assert keys == [KEY, "other-key-0123456789"]


async def test_googles_own_names_for_models(cli: Cli) -> None:
    case = CASE["gemini"]
    async with FakeServer(case.said("hi")) as server:
        choose(cli, case, server)
        cli.environment["GEMINI_MODEL"] = f"models/{case.model}"
        done = await run(cli, "ask", "--json", "hi")
    assert (done.code, server.exchanges[0].path) == (0, case.paths[""])
    assert done.result["usage"]["cost_usd"] == pytest.approx(case.cost_usd(7, 3))


HOSTS = {
    "anthropic": "api.anthropic.com",
    "openai": "api.openai.com",
    "openai-responses": "api.openai.com",
    "gemini": "generativelanguage.googleapis.com",
    "groq": "api.groq.com",
    "deepseek": "api.deepseek.com",
}


@pytest.mark.parametrize("chosen", [True, False], ids=["chosen", "by its key"])
@each_hosted
async def test_without_a_base_url_it_goes_to_the_provider(
    cli: Cli, case: Case, chosen: bool
) -> None:
    async with FakeServer() as proxy:
        cli.environment |= {"HTTPS_PROXY": proxy.url, f"{case.variable}_API_KEY": KEY}
        if chosen:
            cli.environment["LLM_PROVIDER"] = case.name
        done = await run(cli, "ask", "--json", "hi")
    targets = {(exchange.method, exchange.path) for exchange in proxy.exchanges}
    assert targets == {("CONNECT", f"{HOSTS[case.name]}:443")}
    assert not any(KEY in str(exchange.headers) for exchange in proxy.exchanges)
    error = done.result["error"]
    assert (done.code, error["code"]) == (1, "unreachable")
    assert error["provider"] == (case.name if chosen else case.variable.lower())
    assert KEY not in done.out + done.err


# --- no key ----------------------------------------------------------------------------------


@each_hosted
async def test_without_a_key_nothing_is_sent(cli: Cli, case: Case) -> None:
    async with FakeServer() as proxy:
        cli.environment |= {"LLM_PROVIDER": case.name, "HTTPS_PROXY": proxy.url}
        done = await run(cli, "ask", "hi")
        as_json = await run(cli, "ask", "--json", "hi")
    assert proxy.connections == 0
    assert (done.code, done.out, as_json.code) == (1, "", 1)
    assert f"{case.name} needs a key and none is set." in done.err
    assert f"{case.variable}_API_KEY" in done.err
    error = as_json.result["error"]
    assert (error["code"], error["provider"]) == ("unauthorized", case.name)


@each_hosted
async def test_a_server_of_ones_own_needs_no_key(cli: Cli, case: Case) -> None:
    async with FakeServer(case.said("hi")) as server:
        choose(cli, case, server)
        del cli.environment[f"{case.variable}_API_KEY"]
        done = await run(cli, "ask", "hi")
    assert (done.code, done.out) == (0, "hi\n")
    assert case.key[0] not in server.exchanges[0].headers


# --- what fails ------------------------------------------------------------------------------

REFUSALS = {
    400: ("bad_request", False, ""),
    401: ("unauthorized", False, "{variable}_API_KEY"),
    429: ("rate_limited", True, "choose another model"),
    529: ("model", True, "try again later"),
}


@pytest.mark.parametrize("status", REFUSALS)
@each
async def test_refusals_say_who_what_and_what_to_do(cli: Cli, case: Case, status: int) -> None:
    code, retryable, hint = REFUSALS[status]
    if case.name == "ollama" and status == 401:
        hint = "api_key of ollama in your settings"  # it has no variable
    reply = refusal(status, f"No such thing for {KEY}.")
    tries = 4 if retryable else 1
    async with FakeServer(*case.first(), *[reply] * tries) as server:
        choose(cli, case, server)
        done = await run(cli, "-vv", "ask", "--json", "hi")
    assert len(case.asked(server)) == tries
    assert (done.code, done.result["stopReason"], done.result["text"]) == (1, "error", "")
    error = done.result["error"]
    assert error["message"].startswith(f"{case.name} answered {status}")
    assert "No such thing for" in error["message"]
    assert hint.format(variable=case.variable) in error["hint"]
    assert (error["code"], error["status"]) == (code, status)
    assert (error["provider"], error["retryable"]) == (case.name, retryable)
    retries = statuses_of(done.lines, "retrying")
    assert len(retries) == tries - 1
    assert all(f"{case.name} answered {status}" in message for message in retries)
    for output in (done.out, done.err):
        assert KEY not in output
        assert "Traceback" not in output


@each
async def test_people_see_each_try_and_the_end(cli: Cli, case: Case) -> None:
    async with FakeServer(*case.first(), *[overloaded()] * 4) as server:
        choose(cli, case, server)
        done = await run(cli, "ask", "hi")
    assert (done.code, done.out) == (1, "")
    said = f"{case.name} answered 529 (overloaded): Overloaded."
    *tries, error, hint = done.err.strip().split("\n")
    assert tries == [
        f"agentls: {said} Trying again in 0.0 s (attempt {number} of 4)." for number in (2, 3, 4)
    ]
    assert error == f"agentls: error: {said}"
    assert hint == "The server has a problem: try again later, or choose another model."


@each
async def test_a_failure_that_passes_is_no_failure(cli: Cli, case: Case) -> None:
    replies = [refusal(429, "Slow down."), overloaded(), case.said("hi")]
    async with FakeServer(*case.first(), *replies) as server:
        choose(cli, case, server)
        done = await run(cli, "ask", "hi")
    assert (done.code, done.out) == (0, "hi\n")
    assert done.err.count("Trying again in") == 2
    first, *others = case.asked(server)
    assert [exchange.body for exchange in others] == [first.body] * 2


@pytest.mark.parametrize("cut", [True, False], ids=["cut", "no end mark"])
@each
async def test_a_reply_that_keeps_breaking_off(cli: Cli, case: Case, cut: bool) -> None:
    pieces = ("One ", "two ", "three ", "four")
    replies = [case.broken(piece, cut=cut) for piece in pieces]
    async with FakeServer(*case.first(), *replies) as server:
        choose(cli, case, server)
        done = await run(cli, "ask", "hi")
    assert (done.code, len(case.asked(server))) == (1, 4)
    # Each continuation is a line of its own on standard error, not on standard output.
    assert done.out.replace("\n", "") == "One two three four"
    *asked_again, error = [line for line in done.err.split("\n") if line.startswith("agentls: ")]
    assert len(asked_again) == 3
    assert all(line.endswith("Asking again.") for line in asked_again)
    assert error.startswith("agentls: error: ")
    assert case.name in error
    assert KEY not in done.out + done.err


@pytest.mark.parametrize("cut", [True, False], ids=["cut", "no end mark"])
@each
async def test_a_reply_that_breaks_off_once_is_gone_on_with(
    cli: Cli, case: Case, cut: bool
) -> None:
    replies = [case.broken("One ", cut=cut), case.said("two")]
    async with FakeServer(*case.first(), *replies) as server:
        choose(cli, case, server)
        done = await run(cli, "ask", "--json", "hi")
    assert (done.code, done.result["text"], done.err) == (0, "One two", "")
    (message,) = statuses_of(done.lines, "retrying")
    assert message.endswith("Asking again.")
    assert "One" in case.asked(server)[1].body.decode()


@each
async def test_an_error_inside_the_stream(cli: Cli, case: Case) -> None:
    begun = case.wire.frames(case.wire.said("One "))
    end = next(at for at, frame in enumerate(begun) if b"One" in frame)
    body = b"".join(begun[: end + 1]) + case.wire.error(f"Overloaded, {KEY}")
    async with FakeServer(*case.first(), *[case.reply(body)] * 4) as server:
        choose(cli, case, server)
        done = await run(cli, "ask", "hi")
    assert done.code == 1
    assert done.out.startswith("One ")
    assert f"agentls: error: {case.name} reported an error: " in done.err
    assert KEY not in done.out + done.err


@each
async def test_what_is_no_answer_of_an_api(cli: Cli, case: Case) -> None:
    page = refused(404, None)
    async with FakeServer(*case.first(), page) as server:
        choose(cli, case, server)
        done = await run(cli, "ask", "hi")
    assert (done.code, done.out) == (1, "")
    assert f"{case.name} answered 404 (not found)." in done.err
    assert "the base URL" in done.err
    assert server.url in done.err


@each
async def test_a_long_wait_is_said_and_not_waited_for(cli: Cli, case: Case) -> None:
    reply = refused(429, {"error": {"message": "Slow down."}}, retry_after="120")
    async with FakeServer(*case.first(), reply) as server:
        choose(cli, case, server)
        done = await run(cli, "ask", "hi")
    assert (done.code, len(case.asked(server))) == (1, 1)
    assert "It asks to wait 120 s." in done.err


async def test_googles_way_to_refuse_a_key(cli: Cli) -> None:
    case = CASE["gemini"]
    reason: JsonValue = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID",
        "domain": "googleapis.com",
    }
    message = "API key not valid. Please pass a valid API key."
    body: JsonValue = {
        "error": {
            "code": 400,
            "message": message,
            "status": "INVALID_ARGUMENT",
            "details": [reason],
        }
    }
    async with FakeServer(refused(400, body)) as server:
        choose(cli, case, server)
        done = await run(cli, "ask", "--json", "hi")
    error = done.result["error"]
    assert (error["code"], error["status"]) == ("unauthorized", 400)
    assert error["hint"] == "Check GEMINI_API_KEY."


async def test_what_a_provider_says_cannot_steer_the_terminal(cli: Cli) -> None:
    case = CASE["anthropic"]
    evil = "Overloaded\x1b[2J\x1b]0;title\x07\u202e."
    async with FakeServer(*[refusal(529, evil)] * 8) as server:
        choose(cli, case, server)
        plain, as_json = await run(cli, "ask", "hi"), await run(cli, "ask", "--json", "hi")
    for output in (plain.err, as_json.out):
        assert "Overloaded" in output
        assert not set(output) & set("\x1b\x07\u202e")


# --- Ollama ----------------------------------------------------------------------------------


async def test_an_ollama_without_the_model(cli: Cli) -> None:
    missing = refused(404, {"error": "model 'm' not found"})
    async with FakeServer(missing) as server:
        choose(cli, CASE["ollama"], server)
        done = await run(cli, "ask", "hi")
    assert (done.code, done.out) == (1, "")
    assert "agentls: error: Ollama has no model named m." in done.err
    assert "ollama pull m" in done.err


async def test_an_ollama_that_is_not_running(cli: Cli) -> None:
    choose(cli, CASE["ollama"], f"http://127.0.0.1:{closed_port()}")
    done = await run(cli, "ask", "--json", "hi")
    error = done.result["error"]
    assert (done.code, error["code"], error["provider"]) == (1, "unreachable", "ollama")
    assert KEY not in done.out + done.err


async def test_a_refused_key_names_only_variables_that_are_read(cli: Cli) -> None:
    case = CASE["ollama"]
    async with FakeServer(*case.first(), refusal(401, "unauthorized")) as server:
        choose(cli, case, server)
        cli.environment["OLLAMA_HOST"] = server.url
        done = await run(cli, "ask", "--json", "hi")
    assert "OLLAMA_API_KEY" not in done.result["error"]["hint"]
