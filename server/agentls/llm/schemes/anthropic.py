"""The wire format of Anthropic's `/v1/messages`, spoken by llama.cpp's server and proxies as well.

Owns settings, tools and cache marks of a request, and the reply; `anthropic_messages` has the
history. Key and version are headers, and the registry's. What the API refuses is said in
https://platform.claude.com/docs/en/build-with-claude/extended-thinking and in its errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from agentls.core.events import Event, Ping, Usage
from agentls.core.messages import Reasoning
from agentls.core.requests import OPTIONS, ModelRequest, Option, ToolDefinition
from agentls.llm.schemes.anthropic_messages import Json, Turn, began_thinking, to_turns
from agentls.llm.wire import fields
from agentls.llm.wire.blocks import ProseKind, new_call_id
from agentls.llm.wire.content import leading_rules
from agentls.llm.wire.fields import Malformed, Object
from agentls.llm.wire.reading import REFUSED, SAID_ALL, TOO_LONG, Ending, StreamReader

Thinking = Literal["budget", "adaptive", "always"]
_SHOWN: Json = {"type": "adaptive", "display": "summarized"}  # unasked, some hide what they think
_BUDGET_TOKENS = {"low": 1024, "medium": 4096, "high": 16384}
_LEAST_TOP_P = 0.95
"""What the API takes of a model that thinks, as 1024 is the smallest budget."""
_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_PROSE: dict[str, ProseKind] = {"text": "text", "thinking": "thinking"}
_FULL = "model_context_window_exceeded"
_ENDINGS = {"max_tokens": TOO_LONG, _FULL: TOO_LONG, "refusal": REFUSED}


class Anthropic:
    """A `llm.wire.scheme.Scheme`."""

    path = "/v1/messages"
    options: frozenset[Option] = OPTIONS - {"seed"}

    def __init__(
        self,
        model: str,
        *,
        provider: str = "anthropic",
        max_tokens: int = 8192,
        thinking: Thinking = "budget",
        cache: bool = True,
        extra_body: Mapping[str, JsonValue] | None = None,
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        """A format for one model, under the name the server knows it by.

        `provider` is the name used in messages and on reasoning. `max_tokens` is for requests that
        name no limit: the API demands one. `thinking` says whether the model takes a budget of
        tokens or, as newer ones do, an effort. With `cache`, what the next request will begin with
        is marked to be kept. `extra_body` is put over the request's own fields; null takes a field
        out. `new_id` makes ids for calls that came without one.
        """
        self._model = model
        self._provider = provider
        self._max_tokens = max_tokens
        self._adaptive = thinking != "budget"
        self._always = thinking == "always"
        self._cache = cache
        self._extra = dict(extra_body or {})
        self._new_id = new_id

    def build(self, request: ModelRequest) -> dict[str, JsonValue]:
        """See `llm.wire.scheme.Scheme.build`.

        A model that thinks takes no temperature and hardly a top_p, a newer one never both of them:
        what would be refused is left out.
        """
        rules, rest = leading_rules(request.system, request.items)
        turns = to_turns(rest, self._provider)
        thinking = self._thinking(request, turns)
        thinks = thinking is not None and thinking["type"] != "disabled"
        if request.effort and not thinks:
            # The API refuses thinking in the reply in progress when no more of it is asked for.
            rest = [item for item in rest if not isinstance(item, Reasoning)]
            turns = to_turns(rest, self._provider)
        system: list[Json] = [{"type": "text", "text": rules}] if rules.strip() else []
        tools = [_tool(tool) for tool in request.tools]
        if self._cache:
            said = [blocks for role, blocks in turns if role == "user"]
            for blocks in filter(None, (tools, system, *said[-2:])):
                blocks[-1]["cache_control"] = {"type": "ephemeral"}
        body: Json = {
            "model": self._model,
            "max_tokens": self._limit(request, thinking),
            "system": [*system] or None,
            "messages": [{"role": role, "content": [*blocks]} for role, blocks in turns],
            "tools": [*tools] or None,
            "stream": True,
            "thinking": thinking,
            **_settings(request, thinks=thinks, adaptive=self._adaptive),
            **self._extra,
        }
        return {key: value for key, value in body.items() if value is not None}

    def reader(self, _body: Mapping[str, JsonValue], /) -> MessagesReader:
        """See `llm.wire.scheme.Scheme.reader`."""
        return MessagesReader(self._provider, new_id=self._new_id)

    def _thinking(self, request: ModelRequest, turns: Sequence[Turn]) -> Json | None:
        effort = request.effort
        if self._always and effort == "none":
            return None
        if self._adaptive and effort:
            return {"type": "disabled"} if effort == "none" else {**_SHOWN}
        if not effort or effort == "none" or not began_thinking(turns):
            return None
        return {"type": "enabled", "budget_tokens": _BUDGET_TOKENS[effort]}

    def _limit(self, request: ModelRequest, thinking: Json | None) -> int:
        """The limit of the reply. The budget counts towards it and has to be below it."""
        limit = request.max_tokens or self._max_tokens
        budget = thinking.get("budget_tokens") if thinking else None
        return limit + budget if isinstance(budget, int) and limit <= budget else limit


def _tool(tool: ToolDefinition) -> Json:
    schema: Json = {"type": "object", **tool.parameters}
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _settings(request: ModelRequest, *, thinks: bool, adaptive: bool) -> Json:
    temperature, top_p = None if thinks else request.temperature, request.top_p
    if temperature is not None or (thinks and top_p is not None and top_p < _LEAST_TOP_P):
        top_p = None
    config: Json = {"effort": request.effort} if thinks and adaptive else {}
    if request.response_schema is not None:
        config["format"] = {"type": "json_schema", "schema": request.response_schema}
    return {
        "temperature": temperature,
        "top_p": top_p,
        "stop_sequences": [*request.stop] or None,
        "output_config": config or None,
    }


@dataclass(slots=True, eq=False)
class _Block:
    """A block that is not at its end. `whole` are arguments that came with its start."""

    kind: str
    signature: str
    whole: str = ""
    shown: bool = False


class MessagesReader(StreamReader):
    """Reads one response; see `llm.wire.scheme.Reader`. What the server ran itself is left out.

    A reply is whole at `message_stop`, if a stop reason came before it.
    """

    def __init__(self, provider: str, new_id: Callable[[], str]) -> None:
        """`new_id` makes ids for calls that have none."""
        super().__init__(provider, new_id=new_id)
        self._open: dict[int, _Block] = {}
        self._begun = 0
        self._said: _Block | None = None  # whose prose is open
        self._tokens: dict[str, int] = {}
        self._stopped: Ending | None = None

    def _object(self, value: Object) -> Iterator[Event]:
        match fields.text(value, "type"):
            case "ping":
                yield Ping()
            case "message_start":
                self._count(fields.details(value, "message"))
            case "content_block_start":
                yield from self._begin(value, fields.object_or_none(value, "content_block") or {})
            case "content_block_delta":
                yield from self._grow(value, fields.object_or_none(value, "delta") or {})
            case "content_block_stop":
                yield from self._shut(self._key(value))
            case "message_delta":
                self._count(value)
                delta = fields.object_or_none(value, "delta") or {}
                self._finish(fields.text(delta, "stop_reason"))
            case "message_stop":
                self._ending = self._stopped
                yield from self._end()
            case "error" | "" as kind:
                raise self._reported(value) if kind else Malformed("type")

    def _document(self, value: object) -> Iterator[Event]:
        if not isinstance(value, dict) or "content" not in value:
            raise self._reported(value)
        for block in fields.objects(value, "content"):
            yield from self._begin({}, block)
        self._count(value)
        self._finish(fields.text(value, "stop_reason") or "end_turn")
        self._ending = self._stopped

    def _before_end(self) -> Iterator[Event]:
        for key in list(self._open):
            yield from self._shut(key)

    def _key(self, event: Object) -> int:
        """The block that an event is about; without an index, the one that began last."""
        index = event.get("index")
        return index if isinstance(index, int) else next(reversed(self._open), -1)

    def _begin(self, event: Object, start: Object) -> Iterator[Event]:
        index = event.get("index")
        key = index if isinstance(index, int) else self._begun
        self._begun += 1
        yield from self._shut(key)
        kind = fields.text(start, "type")
        block = self._open[key] = _Block(kind, fields.whole_text(start, "signature"))
        if kind == "tool_use":
            call_id, name = fields.whole_text(start, "id"), fields.whole_text(start, "name")
            block.whole = _arguments(start, "input")
            yield from self._settle()
            yield from self._calls.start(block, call_id, name)
        elif kind == "redacted_thinking" and (data := fields.whole_text(start, "data")):
            yield from self._settle()
            yield from self._prose.sealed(encrypted=data)
        elif not kind:
            raise Malformed("content_block")
        else:
            yield from self._say(block, kind, start)

    def _grow(self, event: Object, delta: Object) -> Iterator[Event]:
        block = self._open.get(self._key(event))
        if block is None:
            raise Malformed("index")
        kind = fields.text(delta, "type").removesuffix("_delta")
        if kind == "signature":
            block.signature = fields.whole_text(delta, kind)
        elif kind == "input_json" and block.kind in _PROSE:
            raise Malformed("partial_json")
        elif kind == "input_json" and block in self._calls:
            yield from self._calls.add(block, _arguments(delta, "partial_json"))
        else:
            yield from self._say(block, kind, delta)

    def _shut(self, key: int) -> Iterator[Event]:
        block = self._open.pop(key, None)
        if block is None:
            return
        if block is self._said:
            yield from self._settle()
        elif block.kind == "thinking" and block.signature and not block.shown:
            yield from self._settle()
            yield from self._prose.sealed(signature=block.signature)
        elif block in self._calls and not self._calls.arguments(block):
            yield from self._calls.add(block, block.whole)

    def _say(self, block: _Block, kind: str, part: Object) -> Iterator[Event]:
        """Grow the prose, if the part is some; a block of a kind not known is left out."""
        known = kind in _PROSE and (block.kind in _PROSE or block in self._calls)
        if not known or not (piece := fields.text(part, kind)):
            return
        if block is not self._said or kind != self._prose.kind:
            yield from self._settle()
            self._said, block.shown = block, True
        yield from self._prose.add(_PROSE[kind], piece)

    def _settle(self) -> Iterator[Event]:
        """End the prose that is open."""
        signature = self._said.signature if self._said else None
        self._said = None
        yield from self._prose.stop(signature=signature or None)

    def _finish(self, reason: str) -> None:
        # A reply that was cut stays cut, whatever a later event says.
        if reason and self._stopped in (None, SAID_ALL):
            self._stopped = _ENDINGS.get(reason, SAID_ALL)

    def _count(self, holder: Object) -> None:
        """Take over counts, which are totals; some servers send 0 for what they said before."""
        usage = fields.details(holder, "usage")
        for key, value in (usage | fields.details(usage, "output_tokens_details")).items():
            self._tokens[key] = fields.count(value) or self._tokens.get(key, 0)
        fresh, written, read = (self._tokens.get(key, 0) for key in _INPUT)
        self._usage = Usage(
            input_tokens=fresh + written + read,
            output_tokens=self._tokens.get("output_tokens", 0),
            cache_read_tokens=read,
            cache_creation_tokens=written,
            reasoning_tokens=self._tokens.get("thinking_tokens", 0),
        )


def _arguments(holder: Object, key: str) -> str:
    """Arguments as text, whatever they came as; an empty object is a promise of some."""
    value = holder.get(key)
    return value if isinstance(value, str) else fields.as_json(value, key) if value else ""
