"""The wire format of Gemini's `streamGenerateContent`.

Owns request and reply, after https://ai.google.dev/api/generate-content. A reply is whole once a
finish reason came; there is no end mark. Gemini signs parts of its replies and wants each signature
back on the part it came with, see https://ai.google.dev/gemini-api/docs/thought-signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal
from urllib.parse import quote

from pydantic import JsonValue

from agentls.core.errors import BadRequest
from agentls.core.events import Event, Status, Usage
from agentls.core.messages import (
    ContentBlock,
    Item,
    Message,
    Reasoning,
    TextBlock,
    ToolCall,
    ToolResult,
)
from agentls.core.requests import OPTIONS, Effort, ModelRequest, ToolDefinition
from agentls.core.text import short_line
from agentls.llm.wire import fields
from agentls.llm.wire.blocks import ProseKind, new_call_id
from agentls.llm.wire.content import base64_of, in_turns, leading_rules, tool_name
from agentls.llm.wire.halves import without_halves
from agentls.llm.wire.reading import FILTERED, SAID_ALL, TOO_LONG, Ending, StreamReader

Json = dict[str, JsonValue]

_BUDGETS: dict[Effort | None, int] = {None: -1, "low": 1024, "medium": 8192, "high": 24_576}
"""In tokens, as Google's own compatibility layer reads an effort; -1 lets the model decide. It has
to be said: a model that does not think by default refuses to show thoughts without it."""
_UNSIGNED = "skip_thought_signature_validator"
"""Google's stand-in for the signature of a call of others: Gemini 3 refuses one without."""
_FILTERS = """SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII MODEL_ARMOR ESCALATION
    PUP_LIMITED_DISABLED IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION"""
_ENDINGS: dict[str, Ending | None] = {
    **dict.fromkeys(("", "FINISH_REASON_UNSPECIFIED")),
    "STOP": SAID_ALL,
    **dict.fromkeys(("MAX_TOKENS", "CONTINUATION"), TOO_LONG),
    **dict.fromkeys(_FILTERS.split(), FILTERED),
}
"""Every other reason, such as MALFORMED_FUNCTION_CALL, means a reply that may not be used."""
_MAX_SAID = 300


class Gemini:
    """A `llm.wire.scheme.Scheme`."""

    def __init__(
        self,
        model: str,
        *,
        provider: str = "gemini",
        extra_body: Mapping[str, JsonValue] | None = None,
        new_id: Callable[[], str] = new_call_id,
        thinking: Literal["budget", "level", "off"] = "budget",
    ) -> None:
        """A format for one model.

        Args:
            model: its name, with or without `models/`.
            provider: the name used in messages and on reasoning.
            extra_body: put over the request's own fields; null takes a field out.
            new_id: makes ids for calls that came without one.
            thinking: `budget` up to Gemini 2.5, `level` from 3 on; `off` for what cannot think.
        """
        kind, _, name = model.partition("/")
        if kind not in ("models", "tunedModels"):
            kind, name = "models", model
        resource = f"{kind}/{quote(name, safe='', errors='replace')}"
        self.path = f"/v1beta/{resource}:streamGenerateContent?alt=sse"
        self.options = OPTIONS - {"effort"} if thinking == "off" else OPTIONS
        self._least_budget = 128 if "-pro" in name else 0  # Pro cannot stop thinking
        self._provider = provider
        self._extra = dict(extra_body or {})
        self._new_id = new_id
        self._thinking = thinking

    def build(self, request: ModelRequest) -> Json:
        """See `llm.wire.scheme.Scheme.build`."""
        rules, items = leading_rules(request.system, request.items)
        body: Json = {"contents": [*self._contents(items)]}
        if rules:
            body["systemInstruction"] = {"parts": [{"text": rules}]}
        if request.tools:
            body["tools"] = [{"functionDeclarations": [_declared(tool) for tool in request.tools]}]
        body["generationConfig"] = self._config(request) or None
        body |= self._extra
        return {key: value for key, value in body.items() if value is not None}

    def reader(self, _body: Mapping[str, JsonValue], /) -> GeminiReader:
        """See `llm.wire.scheme.Scheme.reader`."""
        return GeminiReader(self._provider, self._new_id)

    def _config(self, request: ModelRequest) -> Json:
        schema = request.response_schema
        config: Json = {
            "maxOutputTokens": request.max_tokens,
            "temperature": request.temperature,
            "topP": request.top_p,
            "seed": request.seed,
            "stopSequences": list(request.stop) or None,
            "thinkingConfig": self._thoughts(request.effort),
            "responseMimeType": None if schema is None else "application/json",
            "responseJsonSchema": schema,
        }
        return {key: value for key, value in config.items() if value is not None}

    def _thoughts(self, effort: Effort | None) -> Json | None:
        """How much to think, and to show it, which is refused where there is nothing to show."""
        if self._thinking == "off":
            return None
        by_budget = self._thinking == "budget"
        if effort == "none":  # levels know no such thing; LOW is the least that every model has
            return {"thinkingBudget": self._least_budget} if by_budget else {"thinkingLevel": "LOW"}
        shown: Json = {"includeThoughts": True}
        if by_budget:
            return shown | {"thinkingBudget": _BUDGETS[effort]}
        return shown | {"thinkingLevel": effort.upper()} if effort else shown

    def _contents(self, items: Sequence[Item]) -> list[Json]:
        sides: list[tuple[str, list[Json]]] = []
        for turn in in_turns(items):
            parts: list[Json] = []
            for item in turn.items:
                self._add(parts, item)
            role = "model" if turn.role == "assistant" else "user"
            if parts and sides and sides[-1][0] == role:  # what stood between was empty
                sides[-1][1].extend(parts)
            elif parts:
                sides.append((role, parts))
        if not sides or sides[0][0] == "model":  # a history that was shortened
            sides.insert(0, ("user", [{"text": "Go on."}]))
        for _, parts in sides if self._thinking == "level" else ():
            if first := next((part for part in parts if "functionCall" in part), None):
                first.setdefault("thoughtSignature", _UNSIGNED)  # the others of a step have none
        return [{"role": role, "parts": [*parts]} for role, parts in sides]

    def _add(self, parts: list[Json], item: Item) -> None:
        match item:
            case Message():
                blocks = (b for b in item.content if not isinstance(b, TextBlock) or b.text)
                parts += [_part(block, self._provider) for block in blocks]
            case ToolCall():
                parts.append(_signed({"functionCall": _named(item, args=item.arguments)}, item))
            case ToolResult():
                said: Json = {"error" if item.is_error else "output": item.content}
                parts.append({"functionResponse": _named(item, response=said)})
            case Reasoning(provider=self._provider) if item.signature:
                # Thoughts without a signature tell the model nothing. A signature without a thought
                # belongs to the text before it, which streams may send in a part of its own.
                if item.text:
                    parts.append(_signed({"text": item.text, "thought": True}, item))
                elif parts and parts[-1].keys() == {"text"}:
                    parts[-1] = _signed(parts[-1], item)
                else:
                    parts.append(_signed({"text": ""}, item))


class GeminiReader(StreamReader):
    """Reads one response; see `llm.wire.scheme.Reader`."""

    def __init__(self, provider: str, new_id: Callable[[], str]) -> None:
        """`new_id` makes ids for calls that have none."""
        super().__init__(provider, new_id=new_id)
        self._counts: fields.Object = {}

    def _object(self, value: fields.Object) -> Iterator[Event]:
        # Counts are totals so far; a chunk may leave out those that did not change.
        self._counts |= fields.details(value, "usageMetadata")
        self._usage = _usage(self._counts)
        candidates = fields.objects(value, "candidates")
        if not candidates:
            yield from self._blocked(fields.details(value, "promptFeedback"))
        for candidate in [each for each in candidates if each.get("index") in (0, None)][:1]:
            content = fields.object_or_none(candidate, "content") or {}
            for part in fields.objects(content, "parts"):
                yield from self._part(part)
            self._finish(candidate)

    def _document(self, value: object) -> Iterator[Event]:
        """A stream without `alt=sse` is one array of chunks, and so are some errors."""
        for chunk in value if isinstance(value, list) else [value]:
            if not isinstance(chunk, dict):
                raise fields.Malformed("not an object")
            if not {"candidates", "promptFeedback", "usageMetadata"} & chunk.keys():
                raise self._reported(chunk)
            yield from self._object(chunk)

    def _part(self, part: fields.Object) -> Iterator[Event]:
        signature = fields.whole_text(part, "thoughtSignature")
        call = fields.object_or_none(part, "functionCall")
        if call is not None:
            yield from self._call(call, signature)
            return
        kind: ProseKind = "thinking" if part.get("thought") is True else "text"
        yield from self._prose.add(kind, fields.text(part, "text"))
        if signature and kind == self._prose.kind == "thinking":
            yield from self._prose.stop(signature=signature)
        elif signature:
            yield from self._prose.sealed(signature=signature)

    def _call(self, call: fields.Object, signature: str) -> Iterator[Event]:
        if call.get("partialArgs") or call.get("willContinue"):  # only comes to those who ask
            raise fields.Malformed("a call in pieces")
        key, name, args = object(), fields.whole_text(call, "name"), call.get("args")
        call_id = without_halves(str(call.get("id") or ""))
        if args is not None and not isinstance(args, str):
            args = fields.as_json(args, "args")
        yield from self._prose.stop()
        yield from self._calls.start(key, call_id, name)
        yield from self._calls.add(key, args or "")
        self._calls.set(key, signature=signature or None)

    def _finish(self, candidate: fields.Object) -> None:
        reason = fields.text(candidate, "finishReason").upper()
        if reason not in _ENDINGS:
            said = short_line(f"{reason} {fields.text(candidate, 'finishMessage')}", _MAX_SAID)
            error = self._broken(f"gave up on the reply ({said})")
            if reason == "MISSING_THOUGHT_SIGNATURE":  # the request's fault
                raise BadRequest(error.message, provider=self._provider)
            raise error
        # A reply that was cut stays cut, whatever a later chunk says.
        if self._ending in (None, SAID_ALL):
            self._ending = _ENDINGS[reason] or self._ending

    def _blocked(self, feedback: fields.Object) -> Iterator[Event]:
        reason = fields.text(feedback, "blockReason")
        if reason and self._ending is None:
            said = short_line(f"{reason} {fields.text(feedback, 'blockReasonMessage')}", _MAX_SAID)
            yield Status(state="warning", message=f"{self._provider} blocked the prompt: {said}.")
            self._ending = Ending("refusal", "the provider blocked the prompt")


def _usage(counts: fields.Object) -> Usage:
    sent, ran, said, thought, cached = (
        fields.count(counts.get(f"{part}TokenCount"))
        for part in ("prompt", "toolUsePrompt", "candidates", "thoughts", "cachedContent")
    )
    return Usage(
        input_tokens=sent + ran,
        output_tokens=said + thought,
        cache_read_tokens=cached,
        reasoning_tokens=thought,
    )


def _declared(tool: ToolDefinition) -> Json:
    # `parameters` takes a subset of OpenAPI's schemas only.
    schema = tool.parameters
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": schema}


def _named(item: ToolCall | ToolResult, **rest: JsonValue) -> Json:
    name = tool_name(item.name)
    if not (name[0].isalpha() or name[0] == "_"):  # no name may begin with a digit or a dash
        name = tool_name(f"_{name}")
    return {"id": item.call_id, "name": name, **rest}


def _signed(part: Json, item: ToolCall | Reasoning) -> Json:
    return part | {"thoughtSignature": item.signature} if item.signature else part


def _part(block: ContentBlock, provider: str) -> Json:
    if isinstance(block, TextBlock):
        return {"text": block.text}
    if block.url is not None and block.data is None:
        return {"fileData": {"mimeType": block.mime_type, "fileUri": block.url}}
    return {"inlineData": {"mimeType": block.mime_type, "data": base64_of(block, provider)}}
