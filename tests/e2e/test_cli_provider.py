"""The command line against a server of the OpenAI format on loopback, and against nothing."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from support.cli_process import COMMAND, Cli, Finished, closed_port
from support.openai_server import STALL, OpenAIServer, Reply, called, refused, said
from support.openai_streams import chunk, sse

KEY = "sk-test-0123456789abcdef0123456789abcdef"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    made = Cli.below(tmp_path)
    made.environment |= {"OPENAI_API_KEY": KEY, "OPENAI_MODEL": "gpt-fake"}
    return made


async def start(cli: Cli, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        cwd=cli.workspace,
        env=cli.environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def run(cli: Cli, *arguments: str) -> Finished:
    process = await start(cli, *arguments)
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Finished(process.returncode, out.decode(), err.decode())


async def test_a_turn_over_http(cli: Cli) -> None:
    cli.write("a.py", "x = 1\n")
    replies = [called("read_file", path="a.py"), said("x is one")]
    async with OpenAIServer(*replies) as server:
        cli.environment["OPENAI_BASE_URL"] = server.url
        done = await run(cli, "ask", "what is x?")
    assert (done.code, done.out) == (0, "x is one\n")
    assert [exchange.path for exchange in server.exchanges] == ["/v1/chat/completions"] * 2
    assert server.exchanges[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.exchanges[0].json["messages"][-1] == {"role": "user", "content": "what is x?"}
    assert "x = 1" in server.exchanges[1].json["messages"][-1]["content"]


@pytest.mark.parametrize("verbose", [[], ["-vv"]])
async def test_a_wrong_key_is_said_and_the_key_is_not(cli: Cli, verbose: list[str]) -> None:
    body: JsonValue = {
        "error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}
    }
    async with OpenAIServer(refused(401, body), refused(401, body)) as server:
        cli.environment["OPENAI_BASE_URL"] = server.url
        plain = await run(cli, *verbose, "ask", "x")
        as_json = await run(cli, *verbose, "ask", "--json", "x")
    assert (plain.code, plain.out, as_json.code) == (1, "", 1)
    assert "agentls: error:" in plain.err
    error = as_json.result["error"]
    assert (error["code"], error["status"], error["provider"]) == ("unauthorized", 401, "openai")
    for said_anywhere in (plain.err, as_json.out, as_json.err):
        assert KEY not in said_anywhere
        assert "Traceback" not in said_anywhere


async def test_a_model_that_is_down_is_said(cli: Cli) -> None:
    cli.environment["OPENAI_BASE_URL"] = f"http://127.0.0.1:{closed_port()}/v1"
    done = await run(cli, "ask", "--json", "x")
    assert (done.code, done.err) == (1, "")
    assert done.result["error"]["code"] == "unreachable"
    assert done.result["error"]["retryable"] is True


@pytest.mark.parametrize("flags", [[], ["--json"]])
async def test_ctrl_c_mid_stream_keeps_the_text_and_closes_the_connection(
    cli: Cli, flags: list[str]
) -> None:
    first = sse(chunk({"role": "assistant", "content": "Half an"}), done=False)
    async with OpenAIServer(Reply([first, STALL])) as server:
        cli.environment["OPENAI_BASE_URL"] = server.url
        process = await start(cli, "ask", *flags, "x")
        assert process.stdout is not None
        assert process.stderr is not None
        async with asyncio.timeout(20):
            out = await process.stdout.readuntil(b"Half an")
            process.send_signal(signal.SIGINT)
            async with asyncio.timeout(1):
                await (await server.exchange()).gone.wait()
            out += await process.stdout.read()
            err = await process.stderr.read()
            assert await process.wait() == 130
    if flags:
        result = json.loads(out.split(b"\n")[-2])
        assert (result["stopReason"], result["text"], err) == ("cancelled", "Half an", b"")
    else:
        assert (out, err) == (b"Half an\n", b"agentls: cancelled\n")


async def test_the_first_byte_shows_while_the_rest_is_on_its_way(cli: Cli) -> None:
    more = asyncio.Event()
    steps: list[Any] = [
        sse(chunk({"role": "assistant", "content": "first"}), done=False),
        more,
        sse(chunk({"content": " second"}), chunk({}, "stop")),
    ]
    async with OpenAIServer(Reply(steps)) as server:
        cli.environment["OPENAI_BASE_URL"] = server.url
        process = await start(cli, "ask", "x")
        assert process.stdout is not None
        async with asyncio.timeout(20):
            assert await process.stdout.readexactly(5) == b"first"
            more.set()
            assert await process.stdout.read() == b" second\n"
            assert await process.wait() == 0


# --- no model --------------------------------------------------------------------------------


@pytest.fixture
def bare(tmp_path: Path) -> Cli:
    made = Cli.below(tmp_path)
    made.write("retry.py", "def retry_limit():\n    return 4  # retries\n")
    made.write("other.py", "unrelated = True\n")
    return made


async def test_without_a_model_it_says_what_was_looked_for_and_how_to_get_one(bare: Cli) -> None:
    done = await run(bare, "ask", "where is the retry_limit?")
    assert done.code == 1
    for expected in ("No model was found", "Ollama", "OPENAI_API_KEY", "agentls model pull"):
        assert expected in done.err
    assert done.err.count("\n  1. ") == done.err.count("\n  2. ") == done.err.count("\n  3. ") == 1
    assert "Traceback" not in done.err
    assert done.out.startswith("No model answered. These are the passages")
    assert "retry.py:1-2\n    def retry_limit():\n" in done.out


async def test_without_a_model_json_has_the_passages_too(bare: Cli) -> None:
    done = await run(bare, "ask", "--json", "where is the retry_limit?")
    assert (done.code, done.err) == (1, "")
    assert [line["type"] for line in done.lines] == ["error", "result"]
    assert done.result["error"]["code"] == "no_model"
    assert done.result["passages"][0]["path"] == "retry.py"


async def test_without_a_model_nothing_that_fits_is_shown_as_nothing(bare: Cli) -> None:
    done = await run(bare, "ask", "zzzqqq?")
    assert (done.code, done.out) == (1, "")


@pytest.mark.parametrize("provider", ["openai", "groq", "deepseek"])
async def test_a_chosen_provider_without_its_key_is_an_error(bare: Cli, provider: str) -> None:
    bare.environment["LLM_PROVIDER"] = provider
    done = await run(bare, "ask", "--json", "x")
    assert (done.code, done.result["error"]["code"]) == (1, "unauthorized")
    assert f"{provider.upper()}_API_KEY" in done.result["error"]["hint"]


async def test_an_unknown_provider_is_an_error(bare: Cli) -> None:
    bare.environment["LLM_PROVIDER"] = "nonesuch"
    done = await run(bare, "ask", "x")
    assert (done.code, done.out) == (1, "")
    assert "nonesuch" in done.err
