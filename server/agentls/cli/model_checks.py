"""Doctor's checks of the model: chosen, let in, there, reached, measured, able to call tools.

Each is done for real: the provider's list is read, a request is sent, a tool is offered.
"""

from __future__ import annotations

import asyncio
import difflib
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from agentls.app import App, models_folder
from agentls.cli.findings import Check, failure
from agentls.core.errors import ModelError
from agentls.core.events import BlockDelta, BlockStop, Status, Usage
from agentls.core.messages import Message, ToolCall
from agentls.core.ports import Model
from agentls.core.requests import ModelRequest, ToolDefinition
from agentls.llm.embedded.weights import installed
from agentls.llm.model_lists import list_models
from agentls.llm.ollama import same_model
from agentls.llm.registry import PROVIDERS
from agentls.llm.selection import Choice
from agentls.llm.text_calls.tools import TextToolModel

_PROBE = "Reply with the word ready."
_PROBE_TOKENS = 16
_PROBE_TIMEOUT_S = 120
_LIST_TIMEOUT_S = 10.0
_TOOL = ToolDefinition(
    name="report_ready",
    description="Report that you are ready. Call this and say nothing.",
    parameters={
        "type": "object",
        "properties": {"word": {"type": "string", "description": "the word ready"}},
        "required": ["word"],
    },
)
_TOOL_PROBE = "Call the tool report_ready with the word ready."
_TOOL_TOKENS = 256
"""Thinking counts too."""


async def model_checks(app: App) -> AsyncIterator[Check]:
    """What was chosen and why; then for each model, of which a pool has several, what it does."""
    try:
        model = await app.model()
    except Exception as error:  # a defect is a finding like any other
        yield failure("model", error)
        return
    chosen = app.chosen
    why = f": {app.reason}" if app.reason else ""
    yield Check("model", "ok", f"{model.info.name} from {model.info.provider}{why}")
    providers = [choice.provider for choice, _ in chosen]
    for choice, member in chosen:
        repeated = providers.count(choice.provider) > 1
        label = f"{choice.provider}/{member.info.name}" if repeated else choice.provider
        prefix = f"{label} " if len(chosen) > 1 else ""
        async for check in _member_checks(choice, member):
            yield replace(check, name=f"{prefix}{check.name}")


async def _member_checks(choice: Choice, model: Model) -> AsyncIterator[Check]:
    yield _key(choice)
    present = await _present(choice, model.info.name)
    yield present
    reached = await _reach(model)
    yield reached
    yield _context(model, choice, listed=present.state == "ok")
    yield await _tools(model, reached)


def _key(choice: Choice) -> Check:
    provider = PROVIDERS[choice.provider]
    if not provider.key_variable:
        return Check("key", "ok", "none needed")
    if choice.config.api_key is None:
        return Check("key", "note", "none set; a server of one's own may need none")
    return Check("key", "ok", "set")


async def _present(choice: Choice, model: str) -> Check:
    """Whether the provider's own list has the model."""
    provider = PROVIDERS[choice.provider]
    if not provider.models_path:
        return Check("model present", "ok", "nothing to look it up in")
    try:
        names = list(await list_models(provider, choice.config, timeout_s=_LIST_TIMEOUT_S))
    except ModelError as error:
        # Servers of one's own often have no list; the request below tells whether they answer.
        return Check("model present", "note", f"the list of models cannot be read: {error.message}")
    if any(same_model(name, model) for name in names):
        return Check("model present", "ok", f"{model} is one of {len(names)} in the list")
    close = difflib.get_close_matches(model, names, n=3, cutoff=0.4) or names[:3]
    hint = f"Did you mean {', '.join(close)}?" if close else ""
    return Check("model present", "note", f"{model} is not among the {len(names)} listed", hint)


async def _reach(model: Model) -> Check:
    """Send one tiny request, for real."""
    request = ModelRequest(items=(Message.of("user", _PROBE),), max_tokens=_PROBE_TOKENS)
    began = time.monotonic()
    first: float | None = None
    tokens = 0
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT_S):
            async for event in model.stream(request):
                if isinstance(event, BlockDelta):
                    first = first or time.monotonic()
                elif isinstance(event, Usage):
                    tokens = event.output_tokens
    except TimeoutError:
        detail = f"no whole answer in {_PROBE_TIMEOUT_S} s"
        return Check("request", "failed", detail, "Try a smaller model.")
    except Exception as error:  # as above
        return failure("request", error)
    now = time.monotonic()
    if first is None:
        return Check("request", "ok", f"answered after {now - began:.2f} s, without text")
    # A reply that comes in one piece has no speed to speak of.
    speed = f", {tokens / (now - first):.0f} tokens/s" if tokens > 1 and now - first > 0.01 else ""
    return Check("request", "ok", f"answered; first token after {first - began:.2f} s{speed}")


def _context(model: Model, choice: Choice, *, listed: bool) -> Check:
    can = model.info.capabilities
    if can.context_window is None:
        provider = PROVIDERS[choice.provider]
        hint = "Set context_tokens in the provider's section of your settings."
        if provider.models_path and listed:
            hint += f" `agentls model refresh {provider.family}` may find it."
        return Check("context", "note", "not known: long sessions may be refused", hint)
    longest = f"; writes at most {can.max_output_tokens}" if can.max_output_tokens else ""
    return Check("context", "ok", f"{can.context_window} tokens{longest}")


async def _tools(model: Model, reached: Check) -> Check:
    """Offer one tool and see whether it is called."""
    in_text = isinstance(model, TextToolModel)  # to the agent it looks like any other
    how = {
        "native": "by itself",
        "text": "as tagged text",
        "constrained": "held to a JSON schema",
        "none": "not at all; it answers from passages",
    }["text" if in_text else model.info.capabilities.tool_calling]
    # A script has no line for this question.
    asks = model.info.capabilities.tool_calling != "none" and model.info.provider != "scripted"
    if reached.state == "failed":
        return Check("tool calls", "note", "not tried")
    if not asks:
        return Check("tool calls", "ok", how)
    request = ModelRequest(
        items=(Message.of("user", _TOOL_PROBE),), tools=(_TOOL,), max_tokens=_TOOL_TOKENS
    )
    refused = ""
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT_S):
            async for event in model.stream(request):
                match event:
                    case BlockStop(item=ToolCall(name=_TOOL.name)):
                        return Check("tool calls", "ok", f"{how}; it called one")
                    case Status(state="warning", message=message):
                        refused = message
                    case _:
                        pass
    except TimeoutError:
        return Check("tool calls", "note", f"{how}; no answer in {_PROBE_TIMEOUT_S} s")
    except Exception as error:  # as above
        return failure("tool calls", error)
    detail = f"{how}, but it did not call one when asked to"
    advice = "" if in_text else 'Try tool_calling = "text" in its section of your settings.'
    hint = refused or advice
    return Check("tool calls", "note", detail, hint)


def weights_check() -> Check:
    """Which weights for the embedded model are there."""
    folder = models_folder()
    names = [each.name for each in installed(folder)]
    if names:
        return Check("weights", "ok", f"{', '.join(names)} in {folder}")
    return Check("weights", "note", f"none in {folder}", "Fetch some: agentls model pull qwen1.5b")
