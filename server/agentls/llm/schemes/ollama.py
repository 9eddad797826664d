"""The wire format of Ollama's `/api/chat`: one JSON object a line, calls whole.

Ollama drops the beginning of what does not fit its context, and by default says nothing. Requests
ask newer servers to refuse instead (`truncate`, `shift`: "ChatRequest" in
https://github.com/ollama/ollama/blob/main/api/types.go); older ones ignore that, so the counts of
each reply are checked, too. Which context to ask for is `llm.ollama`'s to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from agentls.core.errors import ModelError
from agentls.core.events import Event, Ping, Usage
from agentls.core.messages import (
    ImageBlock,
    Item,
    Message,
    Reasoning,
    TextBlock,
    ToolCall,
    ToolResult,
)
from agentls.core.requests import OPTIONS, ModelRequest, Option, ToolDefinition
from agentls.llm.schemes.ollama_context import SentContext
from agentls.llm.wire import fields
from agentls.llm.wire.blocks import new_call_id
from agentls.llm.wire.content import (
    base64_of,
    in_turns,
    leading_rules,
    only_text,
    refuse,
    tool_name,
)
from agentls.llm.wire.fields import Malformed, Object
from agentls.llm.wire.halves import without_halves
from agentls.llm.wire.ndjson import NDJSONDecoder
from agentls.llm.wire.reading import FILTERED, SAID_ALL, TOO_LONG, StreamReader

_Json = dict[str, JsonValue]

_ENDINGS = {"length": TOO_LONG, "content_filter": FILTERED}
_STATUSES = (  # of errors within a stream, which come as a sentence and nothing else
    (re.compile(r"\bmodel\b.*\bnot found", re.IGNORECASE), 404),
    (re.compile(r"does not support", re.IGNORECASE), 400),
    (re.compile(r"unauthorized", re.IGNORECASE), 401),
    (re.compile(r"server busy|overload|too many requests", re.IGNORECASE), 503),
    (re.compile(r"more (system |gpu )?memory|out of memory", re.IGNORECASE), 500),
)


class Ollama:
    """A `llm.wire.scheme.Scheme`."""

    path = "/api/chat"
    options: frozenset[Option] = OPTIONS

    def __init__(
        self,
        model: str,
        *,
        provider: str = "ollama",
        num_ctx: int | None,
        think_levels: bool = False,
        keep_alive: str | None = None,
        extra_body: Mapping[str, JsonValue] | None = None,
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        """A format for one model.

        Args:
            model: the name the server knows the model by.
            provider: the name used in messages and on reasoning.
            num_ctx: tokens of context to load the model with; None leaves it to the server, and
                what it cuts then goes unnoticed.
            think_levels: the model takes an effort instead of yes or no, and cannot be silenced.
            keep_alive: how long the model stays loaded, such as `30m`.
            extra_body: put over the request's own fields; null takes a field out. Its `options`
                are put over the options one by one: losing `num_ctx` would lose history.
            new_id: makes ids for calls that came without one.
        """
        self._model = model
        self._provider = provider
        self._num_ctx = num_ctx
        self._think_levels = think_levels
        self._keep_alive = keep_alive
        self._extra = dict(extra_body or {})
        self._new_id = new_id

    def build(self, request: ModelRequest) -> _Json:
        """See `llm.wire.scheme.Scheme.build`."""
        messages = self._messages(request)
        body: _Json = {
            "model": self._model,
            "messages": [*messages],
            "stream": True,
            "truncate": False,
            "shift": False,
        }
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        if request.effort is not None:
            body["think"] = self._think(request.effort)
        if request.response_schema is not None:
            body["format"] = request.response_schema
        if self._keep_alive is not None:
            body["keep_alive"] = self._keep_alive
        options = self._options(request)
        body |= {"options": options or None, **self._extra}
        if isinstance(self._extra.get("options"), dict):
            body["options"] = options
        return {key: value for key, value in body.items() if value is not None}

    def reader(self, body: Mapping[str, JsonValue], /) -> OllamaReader:
        """See `llm.wire.scheme.Scheme.reader`."""
        return OllamaReader(self._provider, self._new_id, SentContext.of(body))

    def _think(self, effort: str) -> JsonValue:
        if self._think_levels:
            return "low" if effort == "none" else effort
        return effort != "none"

    def _options(self, request: ModelRequest) -> _Json:
        options: _Json = {
            "num_ctx": self._num_ctx,
            "num_predict": request.max_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "seed": request.seed,
            "stop": list(request.stop) or None,
        }
        extra = self._extra.get("options")
        if isinstance(extra, dict):
            options |= extra
        return {key: value for key, value in options.items() if value is not None}

    def _messages(self, request: ModelRequest) -> list[_Json]:
        rules, rest = leading_rules(request.system, request.items)
        messages: list[_Json] = [{"role": "system", "content": rules}] if rules else []
        for turn in in_turns(rest):
            if turn.role == "assistant":
                messages += self._replied(turn.items)
            else:
                said = (item for item in turn.items if isinstance(item, Message | ToolResult))
                messages += map(self._said, said)
        return messages

    def _replied(self, items: Sequence[Item]) -> list[_Json]:
        """What the model said in one turn: one message, or none when it said nothing."""
        texts = [only_text(item, self._provider) for item in items if isinstance(item, Message)]
        calls = [_call(item) for item in items if isinstance(item, ToolCall)]
        own = (item for item in items if isinstance(item, Reasoning))
        thinking = [item.text for item in own if item.provider == self._provider and item.text]
        message: _Json = {"role": "assistant", "content": "\n\n".join(filter(None, texts))}
        if thinking:
            message["thinking"] = "\n\n".join(thinking)
        if calls:
            message["tool_calls"] = [*calls]
        return [message] if message["content"] or calls else []

    def _said(self, item: Message | ToolResult) -> _Json:
        if isinstance(item, ToolResult):
            return {
                "role": "tool",
                "content": item.content,
                "tool_name": tool_name(item.name),
                "tool_call_id": item.call_id,
            }
        if item.role == "system":
            return {"role": "system", "content": only_text(item, self._provider)}
        message: _Json = {"role": "user", "content": item.text}
        images: list[JsonValue] = []
        for block in item.content:
            if isinstance(block, ImageBlock):
                images.append(base64_of(block, self._provider))
            elif not isinstance(block, TextBlock):
                refuse(self._provider, f"text and images, no {block.type}")
        return {**message, "images": images} if images else message


def _call(call: ToolCall) -> _Json:
    function: _Json = {"name": tool_name(call.name), "arguments": call.arguments}
    return {"id": call.call_id, "function": function}


def _tool(tool: ToolDefinition) -> _Json:
    function: _Json = tool.model_dump(include={"name", "description", "parameters"})
    return {"type": "function", "function": function}


class OllamaReader(StreamReader):
    """Reads one response; see `llm.wire.scheme.Reader`."""

    def __init__(self, provider: str, new_id: Callable[[], str], sent: SentContext) -> None:
        """`new_id` makes ids for calls that have none; `sent` is what the reply is measured by."""
        super().__init__(provider, new_id=new_id, framing=NDJSONDecoder())
        self._sent = sent
        self._is_remote = False
        self._counts_cache = False

    def _object(self, value: Object) -> Iterator[Event]:
        message = fields.object_or_none(value, "message") or {}
        said, thought = fields.text(message, "content"), fields.text(message, "thinking")
        calls = [_made(call) for call in fields.objects(message, "tool_calls")]
        done = value.get("done")
        if not isinstance(done, bool | None):
            raise Malformed("done")
        yield from self._prose.add("thinking", thought)
        yield from self._prose.add("text", said)
        for call_id, name, arguments in calls:
            yield from self._prose.stop()
            key = object()  # no two entries are the same call, whatever their index
            yield from self._calls.start(key, call_id, name)
            yield from self._calls.add(key, arguments)
        if done:
            yield from self._finish(value)
        elif not (thought or said or calls):
            yield Ping()

    def _finish(self, value: Object) -> Iterator[Event]:
        cached = fields.count(value.get("prompt_eval_cached_count"))
        self._counts_cache = "prompt_eval_cached_count" in value
        self._is_remote = bool(value.get("remote_host"))
        self._usage = Usage(
            input_tokens=max(fields.count(value.get("prompt_eval_count")), cached),
            output_tokens=fields.count(value.get("eval_count")),
            cache_read_tokens=cached,
        )
        reason = fields.text(value, "done_reason")
        if reason == "error":
            raise self._broken("gave up on the reply (error)")
        self._ending = _ENDINGS.get(reason, SAID_ALL)
        yield from self._end()

    def _end(self) -> Iterator[Event]:
        for event in super()._end():
            if isinstance(event, Usage) and not self._is_remote:
                yield from self._sent.warning(event, counts_cache=self._counts_cache)
            yield event

    def _reported(self, report: object) -> ModelError:
        said = report.get("error") if isinstance(report, dict) else None
        if isinstance(said, str):
            for pattern, status in _STATUSES:
                if pattern.search(said):
                    return super()._reported({"error": {"message": said, "status": status}})
        return super()._reported(report)


def _made(call: Object) -> tuple[str, str, str]:
    """Id, name and arguments of a call, which comes whole. Some servers send arguments as text."""
    function = fields.object_or_none(call, "function") or {}
    arguments = function.get("arguments")
    raw = arguments if isinstance(arguments, str) else ""
    if arguments is not None and not isinstance(arguments, str):
        raw = fields.as_json(arguments, "arguments")
    call_id = without_halves(str(call.get("id") or ""))
    return call_id, fields.whole_text(function, "name"), raw
