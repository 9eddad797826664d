"""Shapes of the `agent/…` methods: what a client may send and what it gets.

ACP's vocabulary (https://agentclientprotocol.com) in LSP's envelope. Parameters are checked
strictly: null is not a string and 5 is not "5"; unknown keys are ignored, so that newer clients can
talk to older servers. The models here are the one source of the protocol's schema.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
)
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from agentls.core.errors import UsageError
from agentls.core.events import StopReason, Usage
from agentls.core.ports import Mode

MAX_LINE = 2**31 - 1


class _Wire(BaseModel):
    model_config = ConfigDict(
        strict=True, frozen=True, extra="ignore", alias_generator=to_camel, validate_by_name=True
    )

    def to_json(self) -> dict[str, Any]:
        """As it goes over the wire; what is None by default is left out."""
        return self.model_dump(by_alias=True, mode="json", exclude_none=True)


_Params = TypeVar("_Params", bound=_Wire)


def parse(kind: type[_Params], params: object, method: str) -> _Params:
    """Check a request's parameters.

    Raises:
        UsageError: they do not fit. The text names the places and quotes no value.
    """
    try:
        return kind.model_validate(params, by_alias=True, by_name=False)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False, include_context=False)
        raise UsageError(f"{method}: {'; '.join(map(_misfit, details[:3]))}.") from None


def _misfit(detail: ErrorDetails) -> str:
    place = ".".join(map(str, detail["loc"])) or "params"
    # The one message of pydantic's that quotes what was sent.
    unknown_tag = detail["type"] == "union_tag_invalid"
    return f"{place}: {'this type is not known' if unknown_tag else detail['msg']}"


# --- what a client sends ---------------------------------------------------------------------


class NewSession(_Wire):
    """`agent/session/new`. `cwd` is an absolute path inside a workspace folder."""

    cwd: str | None = None
    mode: Mode | None = None
    title: str | None = None


class TextPart(_Wire):
    """Words of the user."""

    type: Literal["text"]
    text: str


class ResourceLink(_Wire):
    """A file or something else the user refers to."""

    type: Literal["resource_link"]
    uri: str
    name: str


def _base64(data: str) -> str:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("not base64") from None
    return data


class ImagePart(_Wire):
    """An image, its bytes as base64."""

    type: Literal["image"]
    mime_type: Annotated[str, Field(pattern=r"^image/[A-Za-z0-9.+-]+$")]
    data: Annotated[str, AfterValidator(_base64)]


Part = Annotated[TextPart | ResourceLink | ImagePart, Field(discriminator="type")]


class PositionParam(_Wire):
    """LSP's position."""

    line: Annotated[int, Field(ge=0, le=MAX_LINE)]
    character: Annotated[int, Field(ge=0, le=MAX_LINE)]


class RangeParam(_Wire):
    """LSP's range."""

    start: PositionParam
    end: PositionParam


class DocumentParam(_Wire):
    """LSP's text document identifier."""

    uri: str


class PromptContext(_Wire):
    """Where the user is: the document in front, and what is selected in it."""

    text_document: DocumentParam | None = None
    range: RangeParam | None = None


class Prompt(_Wire):
    """`agent/session/prompt`."""

    session_id: str
    prompt: Annotated[list[Part], Field(min_length=1)]
    context: PromptContext | None = None


class Cancel(_Wire):
    """`agent/session/cancel`."""

    session_id: str


class SetMode(_Wire):
    """`agent/session/setMode`. ACP calls it `modeId`; `mode`, as in `new`, is taken too."""

    session_id: str
    mode: Annotated[Mode, Field(validation_alias=AliasChoices("modeId", "mode"))]


class NoParams(_Wire):
    """Nothing needed."""


class Selected(_Wire):
    """The user chose one of the options."""

    outcome: Literal["selected"]
    option_id: str


class Dismissed(_Wire):
    """The user chose nothing, or the turn was cancelled."""

    outcome: Literal["cancelled"]


class PermissionAnswer(_Wire):
    """The result of `agent/session/requestPermission`."""

    outcome: Annotated[Selected | Dismissed, Field(discriminator="outcome")]


# --- what a client gets ----------------------------------------------------------------------


class ModeInfo(_Wire):
    """A mode to choose from."""

    id: Mode
    name: str
    description: str


class Modes(_Wire):
    """ACP's `SessionModeState`."""

    current_mode_id: Mode
    available_modes: list[ModeInfo]


class ModelChoice(_Wire):
    """A model to choose from; `modelId` is `provider/name`."""

    model_id: str
    name: str


class Models(_Wire):
    """ACP's `SessionModelState`; `currentModelId` is null while there is no model."""

    current_model_id: str | None
    available_models: list[ModelChoice]

    def to_json(self) -> dict[str, Any]:
        """As it goes over the wire: null says something here."""
        return self.model_dump(by_alias=True, mode="json")


class UsageReport(_Wire):
    """Tokens of a whole turn. `inputTokens` includes those read from and written to a cache."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_read_tokens: int
    cached_write_tokens: int
    thought_tokens: int

    @classmethod
    def of(cls, usage: Usage) -> UsageReport:
        """From the agent's own shape."""
        return cls(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            total_tokens=usage.input_tokens + usage.output_tokens,
            cached_read_tokens=usage.cache_read_tokens,
            cached_write_tokens=usage.cache_creation_tokens,
            thought_tokens=usage.reasoning_tokens,
        )


class PromptResult(_Wire):
    """How a turn ended, and what it took."""

    stop_reason: StopReason
    usage: UsageReport


class SessionUpdate(_Wire):
    """`agent/session/update`; `update` is one of the shapes `lsp/convert.py` makes."""

    session_id: str
    update: dict[str, JsonValue]


MODES: tuple[ModeInfo, ...] = (
    ModeInfo(id="plan", name="Plan", description="Looks and proposes; changes nothing."),
    ModeInfo(id="ask", name="Ask", description="Asks before each change and command."),
    ModeInfo(id="edit", name="Edit", description="Sets out to make changes; each still asks."),
)
