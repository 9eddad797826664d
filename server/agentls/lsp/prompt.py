"""What a prompt's parts and context become for the model.

Files are read through the workspace's one way to files, so that open buffers count, paths outside
are refused, and a file that may hold secrets, or that rules keep from being read unasked, is named
but not quoted. A document that is no file yet is what the editor says it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from agentls.core.errors import ToolError
from agentls.core.messages import ContentBlock, ImageBlock, TextBlock
from agentls.core.ports import Files
from agentls.core.text import cap_middle, fence, visible
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

    def __init__(
        self,
        files: Files,
        root: Path,
        encoding: Encoding,
        *,
        readable: Callable[[str], bool],
        held: Callable[[str], str | None],
    ) -> None:
        """`encoding` is that of the client's positions.

        `readable` is whether rules let a file be shown without asking, `held` the text of a
        document that the editor holds open and that is no file.
        """
        self._files = files
        self._root = root
        self._encoding = encoding
        self._readable = readable
        self._held = held

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
        name = _label(self._name(path) if path is not None else uri)
        if where is None:
            return f"\n(The user is looking at {name}.)\n"
        selected = await self._quoted(uri, where)
        if selected:
            return f"\n(Selected in {name}:)\n{selected}"
        return f"\n(The user is looking at {name}, line {where.start.line + 1}.)\n"

    async def _quoted(self, uri: str, where: RangeParam | None) -> str:
        """Text of a document in a labelled fence; empty when it cannot be had."""
        label, text = await self._document(uri)
        if text is None:
            return ""
        if where is None:
            return _fenced(label, text)
        start, end = where.start, where.end
        selection = Range(Position(start.line, start.character), Position(end.line, end.character))
        text = text_in(document_lines(text), selection, self._encoding)
        return _fenced(f"{label}:{start.line + 1}-{end.line + 1}", text) if text else ""

    async def _document(self, uri: str) -> tuple[str, str | None]:
        """Name and text of a file of the workspace or an open document that is no file."""
        path = path_of(uri)
        if path is None:
            return uri, self._held(uri)
        try:
            facts = await self._files.facts(str(path))
            shown = facts.exists and not facts.secret
            if not shown or not all(map(self._readable, filter(None, (facts.path, facts.target)))):
                return facts.path, None
            file = await self._files.read(str(path))
        except ToolError:
            return uri, None
        return file.path, file.text

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
    """A labelled part of a file that its own text cannot end."""
    capped = cap_middle(text, _MAX_QUOTED_BYTES, "use read_file for the rest")
    marks = fence(capped)
    end = "" if capped.endswith("\n") else "\n"
    return f"{marks} {_label(label)}\n{capped}{end}{marks}\n"


def _label(text: str) -> str:
    return visible(text).replace("\n", " ").replace("\t", " ")
