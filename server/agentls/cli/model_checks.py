"""Doctor's checks of the model: chosen, reached, measured, installed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from agentls.app import App, models_folder
from agentls.cli.findings import Check, failure
from agentls.core.events import BlockDelta, Usage
from agentls.core.messages import Message
from agentls.core.ports import Model
from agentls.core.requests import ModelRequest
from agentls.llm.weights import installed

_PROBE = "Reply with the word ready."
_PROBE_TOKENS = 16
_PROBE_TIMEOUT_S = 120


async def model_checks(app: App) -> AsyncIterator[Check]:
    """Which model was chosen and why, whether it answers, and what it can do."""
    try:
        model = await app.model()
    except Exception as error:  # a defect is a finding like any other
        yield failure("model", error)
        return
    why = f": {app.choice.reason}" if app.choice else ""
    yield Check("model", "ok", f"{model.info.name} from {model.info.provider}{why}")
    yield await _reach(model)
    can = model.info.capabilities
    size = f"{can.context_window} tokens" if can.context_window else "not known"
    yield Check("context", "ok" if can.context_window else "note", size)
    how = {
        "native": "by itself",
        "constrained": "held to a JSON schema",
        "none": "not at all; it answers from passages",
    }[can.tool_calling]
    yield Check("tool calls", "ok", how)


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


def weights_check() -> Check:
    """Which weights for the embedded model are there."""
    folder = models_folder()
    names = [each.name for each in installed(folder)]
    if names:
        return Check("weights", "ok", f"{', '.join(names)} in {folder}")
    return Check("weights", "note", f"none in {folder}", "Fetch some: agentls model pull qwen1.5b")
