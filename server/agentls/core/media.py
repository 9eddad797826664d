"""Checks content against what a model can take: a block it has no sense for is an error. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from agentls.core.errors import BadRequest
from agentls.core.messages import ContentBlock, TextBlock
from agentls.core.requests import ModelInfo


def check_media(info: ModelInfo, content: Iterable[ContentBlock]) -> None:
    """Refuse blocks that would have to be dropped.

    Raises:
        BadRequest: names the kind of content and the model.
    """
    able = {
        "image": ("images", info.capabilities.images),
        "audio": ("audio", info.capabilities.audio),
        "document": ("documents", info.capabilities.documents),
    }
    for block in content:
        if isinstance(block, TextBlock):
            continue
        noun, can = able[block.type]
        if not can:
            raise BadRequest(
                f"The model {info.name} cannot take {noun}.",
                hint="Remove the attachment or choose another model.",
                provider=info.provider,
            )
