"""What a prompt's parts and context become for the model.

Files are read through the workspace's one way to files, so that open buffers count, paths outside
are refused, and a file that may hold secrets is named but not quoted: reading it asks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from agentls.core.errors import ToolError
from agentls.core.messages import ContentBlock, ImageBlock, TextBlock
from agentls.core.ports import Files
from agentls.core.text import cap_middle, visible
from agentls.lsp.client import path_of
from agentls.lsp.positions import Encoding, Position, Range, document_lines, text_in
from agentls.lsp.protocol import (
    ImagePart,
    Part,
    PromptContext,
    RangeParam,
    ResourceLink,
    TextPart,
)

_MAX_QUOTED_BYTES = 32 * 1024
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class PromptReader:
    """Reads the prompts of one workspace."""

    def __init__(self, files: Files, root: Path, encoding: Encoding) -> None:
        """`encoding` is that of the client's positions."""
        self._files = files
        self._root = root
        self._encoding = encoding

    async def read(
        self, parts: Sequence[Part], context: PromptContext | None
    ) -> tuple[ContentBlock, ...]:
        """The content of the user's message: the parts in order, then where the user is."""
        blocks: list[ContentBlock] = []
        for part in parts:
            match part:
                case TextPart():
                    blocks.append(_text(part.text))
                case ResourceLink():
                    blocks.append(_text(await self._link(part)))
                case ImagePart():
                    blocks.append(ImageBlock(mime_type=part.mime_type, data=part.data))
        if context is not None and context.text_document is not None:
            blocks.append(_text(await self._place(context.text_document.uri, context.range)))
        return tuple(blocks)

    async def _link(self, link: ResourceLink) -> str:
        mention = f"\n[{_label(link.name)}]({_label(link.uri)})\n"
        quoted = await self._quoted(link.uri, None)
        return f"{mention}{quoted}" if quoted else mention

    async def _place(self, uri: str, where: RangeParam | None) -> str:
        path = path_of(uri)
        name = self._name(path) if path is not None else uri
        if where is None:
            return f"\n(The user is looking at {_label(name)}.)\n"
        selected = await self._quoted(uri, where)
        return f"\n(Selected in {_label(name)}:)\n{selected}" if selected else ""

    async def _quoted(self, uri: str, where: RangeParam | None) -> str:
        """Text of a file of the workspace in a labelled fence; empty when it cannot be had."""
        path = path_of(uri)
        if path is None:
            return ""
        try:
            facts = await self._files.facts(str(path))
            if facts.secret or not facts.exists:
                return ""
            file = await self._files.read(str(path))
        except ToolError:
            return ""
        if where is None:
            return _fenced(file.path, file.text)
        start, end = where.start, where.end
        selection = Range(Position(start.line, start.character), Position(end.line, end.character))
        text = text_in(document_lines(file.text), selection, self._encoding)
        return _fenced(f"{file.path}:{start.line + 1}-{end.line + 1}", text) if text else ""

    def _name(self, path: Path) -> str:
        return (
            path.relative_to(self._root).as_posix()
            if path.is_relative_to(self._root)
            else str(path)
        )


def _text(text: str) -> TextBlock:
    # Half a character cannot be sent to any provider.
    return TextBlock(text=_LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text))


def _fenced(label: str, text: str) -> str:
    """A fence longer than any in the text, so that the text cannot end it."""
    capped = cap_middle(text, _MAX_QUOTED_BYTES, "use read_file for the rest")
    longest = max((len(run) for run in re.findall(r"`+", capped)), default=0)
    fence = "`" * max(3, longest + 1)
    end = "" if capped.endswith("\n") else "\n"
    return f"{fence} {_label(label)}\n{capped}{end}{fence}\n"


def _label(text: str) -> str:
    return visible(text).replace("\n", " ").replace("\t", " ")
