"""What of a request a model cannot take: taken out, and said.

Pure. Knows the options of `core.requests` and the limits in a model's capabilities.
"""

from __future__ import annotations

from agentls.core.errors import BadRequest
from agentls.core.requests import ModelInfo, ModelRequest, Option

_EMPTY: dict[Option, object] = {
    "max_tokens": None,
    "temperature": None,
    "top_p": None,
    "seed": None,
    "stop": (),
    "effort": None,
    "response_schema": None,
    "tools": (),
}


def fitted(
    request: ModelRequest, info: ModelInfo, carried: frozenset[Option]
) -> tuple[ModelRequest, tuple[str, ...]]:
    """The request as the model can take it, and what was changed, as sentences for people.

    `carried` is what the wire format has. The text of a reply may not be right without its schema,
    so that is never left out.

    Raises:
        BadRequest: the request needs a schema and the model cannot be held to one.
    """
    can = info.capabilities
    left_out = [
        option
        for option, empty in _EMPTY.items()
        if getattr(request, option) != empty
        and (option not in carried or option in can.refuses)
        # To think not at all is what a model does that cannot.
        and not (option == "effort" and request.effort == "none")
    ]
    if "response_schema" in left_out:
        raise BadRequest(
            f"The model {info.name} cannot hold its reply to a JSON schema.",
            hint="Choose another model.",
            provider=info.provider,
        )
    update: dict[str, object] = {option: _EMPTY[option] for option in left_out}
    notes = []
    if left_out:
        notes.append(f"{info.name} does not take {', '.join(left_out)}: left out.")
    if request.effort == "none" and ("effort" not in carried or "effort" in can.refuses):
        update["effort"] = None
    longest = can.max_output_tokens
    if request.max_tokens and longest and request.max_tokens > longest:
        update["max_tokens"] = longest
        notes.append(f"{info.name} writes at most {longest} tokens: max_tokens was lowered to it.")
    hottest = can.max_temperature
    if "temperature" not in left_out and (request.temperature or 0) > hottest:
        update["temperature"] = hottest
        notes.append(f"{info.name} takes a temperature of at most {hottest:g}: lowered to it.")
    return (request.model_copy(update=update) if update else request), tuple(notes)
