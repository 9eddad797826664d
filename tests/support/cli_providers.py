"""The hosted providers and Ollama as a user configures them, each with a fake server of its wire.

What is expected of a request on the wire is said here from the vendors' documentation, apart from
the product's own code.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from support.cli_process import COMMAND, Cli, Finished
from support.fake_server import CUT, Exchange, FakeServer, Reply, Step, refused
from support.wires import anthropic, gemini, ollama, openai_chat, openai_responses
from support.wires.wire import Wire

Json = dict[str, Any]

KEY = "Zq3x-no-known-prefix-0123456789abcdef"
"""Nothing like the keys that can be told by their looks."""

_BASIC = base64.b64encode(f"ollama:{KEY}".encode()).decode()
"""How the key gets to an Ollama, which has none: as the password of a gate in front of it."""
_GEMINI_PATH = "/v1beta/models/{model}:streamGenerateContent?alt=sse"


@dataclass(frozen=True)
class Case:
    """One provider. `dollars` are those of a million tokens of its default model, in and out.

    `bases` are what a user may put behind the address of a server, `path` is where requests then
    go, by base.
    """

    name: str
    wire: Wire
    variable: str
    model: str
    key: tuple[str, str]
    dollars: tuple[float, float] | None
    paths: Mapping[str, str]

    def environment(self, server: FakeServer | str, base: str | None = None) -> dict[str, str]:
        """What a user sets."""
        url = server if isinstance(server, str) else server.url
        base = next(iter(self.paths)) if base is None else base
        if self.name == "ollama":
            scheme, address = (url + base).split("://")
            url = f"{scheme}://ollama:{KEY}@{address}"
            return {"OLLAMA_HOST": url, "OLLAMA_MODEL": self.model}
        return {f"{self.variable}_BASE_URL": url + base, f"{self.variable}_API_KEY": KEY}

    def reply(self, body: bytes) -> Reply:
        """A whole reply."""
        return self.wire.reply(body)

    def said(self, *pieces: str) -> Reply:
        """A reply of text."""
        return self.reply(self.wire.said(*pieces))

    def called(self, name: str, **arguments: object) -> Reply:
        """A reply of one call."""
        return self.reply(self.wire.called(("call_1", name, arguments)))

    def broken(self, text: str, *, cut: bool) -> Reply:
        """A reply that stops behind some text: cut off, or ended as if it were whole."""
        frames = self.wire.frames(self.wire.said(text))
        wanted = json.dumps(text.strip())[1:-1].encode()
        end = next(at for at, frame in enumerate(frames) if wanted in frame)
        steps: list[Step] = [*frames[: end + 1], *([CUT] if cut else [])]
        return Reply(steps, headers={"Content-Type": self.wire.content_type})

    def first(self) -> list[Reply]:
        """What a server is asked before the first request, and says."""
        return [shown()] if self.name == "ollama" else []

    def asked(self, server: FakeServer) -> list[Exchange]:
        """The requests to the model."""
        return [e for e in server.exchanges if not e.path.endswith("/api/show")]

    def cost_usd(self, tokens_in: int, tokens_out: int) -> float | None:
        """What so many tokens cost."""
        if self.dollars is None:
            return None
        return (tokens_in * self.dollars[0] + tokens_out * self.dollars[1]) / 1e6


def _chat_paths(*bases: str) -> dict[str, str]:
    return {base: f"{base}/chat/completions" for base in bases}


CASES: tuple[Case, ...] = (
    Case(
        "anthropic",
        anthropic.WIRE,
        "ANTHROPIC",
        "claude-sonnet-5-5",
        ("x-api-key", KEY),
        (2, 10),
        dict.fromkeys(("", "/v1", "/v1/"), "/v1/messages"),
    ),
    Case(
        "openai",
        openai_chat.WIRE,
        "OPENAI",
        "gpt-6-luna",
        ("authorization", f"Bearer {KEY}"),
        (0.1, 0.5),
        {**_chat_paths("/v1", ""), "/v1/": "/v1/chat/completions"},
    ),
    Case(
        "openai-responses",
        openai_responses.WIRE,
        "OPENAI",
        "gpt-6-luna",
        ("authorization", f"Bearer {KEY}"),
        (0.1, 0.5),
        {"/v1": "/v1/responses", "": "/responses"},
    ),
    Case(
        "gemini",
        gemini.WIRE,
        "GEMINI",
        "gemini-3.8-flash",
        ("x-goog-api-key", KEY),
        (0.75, 3.75),
        dict.fromkeys(("", "/v1beta"), _GEMINI_PATH.format(model="gemini-3.8-flash")),
    ),
    Case(
        "groq",
        openai_chat.WIRE,
        "GROQ",
        "openai/gpt-oss-120b",
        ("authorization", f"Bearer {KEY}"),
        (0.15, 0.6),
        _chat_paths("/openai/v1", ""),
    ),
    Case(
        "deepseek",
        openai_chat.WIRE,
        "DEEPSEEK",
        "deepseek-v4-flash",
        ("authorization", f"Bearer {KEY}"),
        (0.3, 1.2),
        _chat_paths("/v1", ""),
    ),
    Case(
        "ollama",
        ollama.WIRE,
        "OLLAMA",
        "m",
        ("authorization", f"Basic {_BASIC}"),
        None,
        dict.fromkeys(("", "/v1"), "/api/chat"),
    ),
)
CASE: dict[str, Case] = {case.name: case for case in CASES}
HOSTED = tuple(case for case in CASES if case.name != "ollama")


def shown(*capabilities: str, context_length: int = 131_072) -> Reply:
    """Ollama's answer about a model; with tools and thinking unless told otherwise."""
    return document(
        {
            "capabilities": [*(capabilities or ("completion", "tools", "thinking"))],
            "details": {"family": "qwen3", "families": ["qwen3"]},
            "model_info": {
                "general.architecture": "qwen3",
                "qwen3.context_length": context_length,
            },
        }
    )


def document(value: JsonValue) -> Reply:
    """A reply of one JSON document."""
    return Reply([json.dumps(value).encode()], headers={"Content-Type": "application/json"})


def overloaded() -> Reply:
    """Status 529, with the advice to try again almost at once."""
    return refusal(529, "Overloaded")


def refusal(status: int, message: str) -> Reply:
    """An error in the shape that all vendors share, to be tried again almost at once if at all."""
    body: JsonValue = {"error": {"message": message}}
    return refused(status, body, retry_after="0.01")


def called_back(wire: str, body: Json) -> tuple[str, object, str]:
    """Name and arguments of the last call of a request, and its result, which are a pair."""
    match wire:
        case "anthropic":
            use, result = body["messages"][-2]["content"][-1], body["messages"][-1]["content"][0]
            assert (use["type"], result["type"]) == ("tool_use", "tool_result")
            assert use["id"] == result["tool_use_id"]
            return use["name"], use["input"], _text(result["content"])
        case "openai_chat":
            call, result = body["messages"][-2]["tool_calls"][0], body["messages"][-1]
            assert (result["role"], result["tool_call_id"]) == ("tool", call["id"])
            function = call["function"]
            return function["name"], json.loads(function["arguments"]), _text(result["content"])
        case "openai_responses":
            call, result = body["input"][-2:]
            assert (call["type"], result["type"]) == ("function_call", "function_call_output")
            assert call["call_id"] == result["call_id"]
            return call["name"], json.loads(call["arguments"]), _text(result["output"])
        case "gemini":
            made = body["contents"][-2]["parts"][-1]["functionCall"]
            result = body["contents"][-1]["parts"][0]["functionResponse"]
            assert made["name"] == result["name"]
            return made["name"], made["args"], json.dumps(result["response"])
        case _:
            function = body["messages"][-2]["tool_calls"][0]["function"]
            assert body["messages"][-1]["role"] == "tool"
            return function["name"], function["arguments"], body["messages"][-1]["content"]


def _text(content: str | Sequence[Json]) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def model_of(exchange: Exchange) -> str:
    """The model that a request is for; Gemini has it in the path."""
    model = exchange.json.get("model")
    return str(model) if model else exchange.path.split("/models/")[1].split(":")[0]


def system_of(wire: str, body: Json) -> str:
    """The system prompt of a request."""
    match wire:
        case "anthropic":
            return _text(body["system"])
        case "gemini":
            return _text(body["systemInstruction"]["parts"])
        case "openai_responses":
            return str(body["instructions"])
        case _:
            assert body["messages"][0]["role"] == "system"
            return str(body["messages"][0]["content"])


# --- the command -----------------------------------------------------------------------------


async def run(cli: Cli, *arguments: str) -> Finished:
    """Run the command to its end, while servers of this loop answer it."""
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


def configure(cli: Cli, text: str) -> None:
    """Write the user file."""
    path = cli.home / ".config" / "agentls" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o600)


def text_of(lines: Sequence[Json], kind: str) -> str:
    """What blocks of a kind said, of the lines of `--json`."""
    indexes = {e["index"] for e in lines if e["type"] == "block_start" and e["block"] == kind}
    return "".join(e["text"] for e in lines if e["type"] == "block_delta" and e["index"] in indexes)


def results_of(lines: Sequence[Json]) -> list[tuple[str, str, bool]]:
    """Name, content and failure of each tool that ran."""
    items = [event["item"] for event in lines if event["type"] == "block_stop"]
    return [
        (item["name"], item["content"], item["is_error"])
        for item in items
        if item["kind"] == "tool_result"
    ]


def statuses_of(lines: Sequence[Json], state: str) -> list[str]:
    """The messages of a state."""
    return [e["message"] for e in lines if e["type"] == "status" and e["state"] == state]
