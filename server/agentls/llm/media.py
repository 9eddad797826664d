"""Checks content against what a model can take, before anything is sent.

Owns the one rule: a block that would have to be dropped is an error instead.
"""

from __future__ import annotations

from agentls.core.errors import BadRequest
from agentls.core.messages import Message, TextBlock
from agentls.core.requests import ModelInfo, ModelRequest


def check_media(info: ModelInfo, request: ModelRequest) -> None:
    """Refuse a request with a block the model has no sense for.

    Raises:
        BadRequest: names the kind of content and the model.
    """
    able = {
        "image": ("images", info.capabilities.images),
        "audio": ("audio", info.capabilities.audio),
        "document": ("documents", info.capabilities.documents),
    }
    for item in request.items:
        for block in item.content if isinstance(item, Message) else ():
            if isinstance(block, TextBlock):
                continue
            noun, can = able[block.type]
            if not can:
                raise BadRequest(
                    f"{info.name} cannot take {noun}.",
                    hint="Take it out, or choose a model that can.",
                    provider=info.provider,
                )
