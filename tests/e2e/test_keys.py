"""Keys on their way in, and all the ways out that they must not find."""

from __future__ import annotations

import asyncio
import base64
import stat
import subprocess
from pathlib import Path

import psutil
import pytest
from pydantic import JsonValue

from support.cli_process import COMMAND, Cli, Finished, asleep, closed_port, until
from support.openai_server import OpenAIServer, refused, said
from support.terminal import talking

KEY = "Zq3x-no-known-prefix-0123456789abcdef"
"""Nothing like the keys that can be told by their looks."""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    made = Cli.below(tmp_path)
    made.environment |= {
        "PYTHON_KEYRING_BACKEND": "keyrings.alt.file.PlaintextKeyring",
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }
    return made


def kept(cli: Cli) -> str:
    """All that the keyring has on disk, decoded."""
    path = Path(cli.environment["XDG_DATA_HOME"], "python_keyring", "keyring_pass.cfg")
    return path.read_text("utf-8") if path.exists() else ""


def listed(cli: Cli) -> dict[str, list[str]]:
    done = cli.run("key", "list", "--json")
    assert (done.code, done.err) == (0, "")
    assert KEY not in done.out
    *lines, _ = done.lines
    return {
        line["provider"]: [source["kind"] for source in line["sources"]]
        for line in lines
        if line["sources"]
    }


def test_by_pipe_list_and_delete(cli: Cli) -> None:
    assert listed(cli) == {}
    done = cli.run("key", "set", "openai", stdin=f"{KEY}\n".encode())
    assert (done.code, done.err) == (0, "")
    assert done.out == "The key for openai is kept in keyrings.alt.file.PlaintextKeyring.\n"
    assert "[agentls]" in kept(cli)
    assert listed(cli) == {"openai": ["keyring"]}
    gone = cli.run("key", "delete", "openai", "--json")
    assert (gone.code, gone.err) == (0, "")
    assert gone.result == {"type": "result", "provider": "openai", "deleted": True}
    assert listed(cli) == {}
    again = cli.run("key", "delete", "openai")
    assert (again.code, again.out) == (1, "")


def test_at_a_terminal_the_key_is_not_echoed(cli: Cli) -> None:
    with talking(cli, "key", "set", "openai") as terminal:
        terminal.see("Key for openai (it is not shown): ")
        terminal.child.waitnoecho()
        terminal.enter(KEY)
        terminal.see("is kept in")
        assert terminal.end() == 0
        shown = "\n".join(terminal.lines)
    assert KEY not in shown
    assert "*" not in shown
    assert listed(cli) == {"openai": ["keyring"]}


def test_leaving_the_question_keeps_nothing(cli: Cli) -> None:
    for leave, code in (("\x03", 130), ("\x04", 2), ("\r", 2)):
        with talking(cli, "key", "set", "openai") as terminal:
            terminal.see("Key for openai")
            terminal.child.waitnoecho()
            terminal.child.send(leave)
            assert terminal.end() == code
    assert kept(cli) == ""


def test_a_key_is_in_no_list_of_processes(cli: Cli) -> None:
    with cli.start("key", "set", "openai") as process:
        assert process.stdin is not None
        process.stdin.write(KEY.encode())
        process.stdin.flush()
        until(lambda: asleep(process.pid))
        everyone = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, check=True)
        assert b"key set openai" in everyone.stdout
        assert KEY.encode() not in everyone.stdout
        assert KEY not in " ".join(psutil.Process(process.pid).cmdline())
        out, err = process.communicate(b"\n", 30)
    assert process.returncode == 0
    assert KEY.encode() not in out + err


def test_without_a_keyring(cli: Cli) -> None:
    cli.environment["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    done = cli.run("key", "set", "openai", stdin=KEY.encode())
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("agentls: error: The system's keyring cannot be used")
    assert "OPENAI_API_KEY" in done.err
    assert "mode 600" in done.err
    assert KEY not in done.err
    # Said before anybody is asked for a key that could not be kept.
    assert cli.run("key", "set", "openai", stdin=b"").err == done.err


def test_a_kept_key_is_used_where_there_is_no_other(cli: Cli) -> None:
    nowhere = f"http://127.0.0.1:{closed_port()}"
    cli.environment |= {"LLM_PROVIDER": "openai", "HTTPS_PROXY": nowhere}
    assert cli.run("ask", "--json", "hi").result["error"]["code"] == "unauthorized"
    cli.run("key", "set", "openai", stdin=KEY.encode())
    assert cli.run("ask", "--json", "hi", timeout_s=60).result["error"]["code"] == "unreachable"


async def test_a_kept_key_goes_to_no_other_address_than_the_providers(cli: Cli) -> None:
    cli.run("key", "set", "openai", stdin=KEY.encode())
    cli.environment |= {"LLM_PROVIDER": "openai", "OPENAI_MODEL": "m"}
    async with OpenAIServer(said("good")) as server:
        cli.environment["OPENAI_BASE_URL"] = server.url
        assert (await run(cli, "ask", "hi")).out == "good\n"
        (exchange,) = server.exchanges
    assert "authorization" not in exchange.headers


# --- ways out --------------------------------------------------------------------------------


def configured(cli: Cli, text: str) -> None:
    path = cli.home / ".config" / "agentls" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"[llm]\nprovider = 'openai'\n[llm.openai]\nmodel = 'm'\n{text}\n", "utf-8")
    path.chmod(stat.S_IRUSR | stat.S_IWUSR)


PLACES = {
    "variable": "base_url = '{url}'",
    "file": "base_url = '{url}'\napi_key = '{key}'",
    "header": "base_url = '{url}'\nheaders = {{ X-Access = '{key}' }}",
    "bearer": "base_url = '{url}'\nheaders = {{ Authorization = 'Bearer {key}' }}",
    "address": "base_url = '{with_key}'",
    "body": "base_url = '{url}'\nextra_body = {{ password = '{key}' }}",
}


async def run(cli: Cli, *arguments: str) -> Finished:
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        cwd=cli.workspace,
        env=cli.environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Finished(process.returncode, out.decode(), err.decode())


@pytest.mark.parametrize("place", PLACES)
async def test_a_key_is_sent_and_told_to_nobody_else(cli: Cli, place: str) -> None:
    echo: JsonValue = {"error": {"message": f"wrong: {KEY}", "code": "invalid_api_key"}}
    commands = [["doctor"], ["doctor", "--json"], ["ask", "-vv", "hi"], ["ask", "--json", "hi"]]
    if place == "variable":
        cli.environment["OPENAI_API_KEY"] = KEY

    def at(url: str) -> None:
        with_key = url.replace("://", f"://me:{KEY}@")
        configured(cli, PLACES[place].format(url=url, key=KEY, with_key=with_key))

    async with OpenAIServer(*[refused(401, echo)] * 20) as server:
        at(server.url)
        ended = await asyncio.gather(*(run(cli, *command) for command in commands))
    for command, done in zip(commands, ended, strict=True):
        assert done.code == 1
        assert "[key]" in done.out + done.err, command
        assert KEY not in done.out + done.err, command
    async with OpenAIServer(said("good")) as server:
        at(server.url)
        assert (await run(cli, "ask", "hi")).out == "good\n"
        (exchange,) = server.exchanges
    sent = f"{exchange.headers} {exchange.body.decode()}"
    basic = base64.b64encode(f"me:{KEY}".encode()).decode()
    assert (basic if place == "address" else KEY) in sent


@pytest.mark.parametrize("place", ["file", "header", "bearer", "address", "body"])
async def test_a_file_that_others_can_read_is_named_and_its_key_is_not(
    cli: Cli, place: str
) -> None:
    url = "http://127.0.0.1:9/v1"
    with_key = url.replace("://", f"://me:{KEY}@")
    text = PLACES[place].format(url=url, key=KEY, with_key=with_key)
    configured(cli, text.replace("X-Access", "X-Access-Token"))
    path = cli.home / ".config" / "agentls" / "config.toml"
    path.chmod(0o644)
    for command in (["doctor"], ["doctor", "--json"], ["key", "list"], ["key", "list", "--json"]):
        done = await run(cli, *command)
        assert f"Run `chmod 600 {path}`" in done.out + done.err
        assert KEY not in done.out + done.err
