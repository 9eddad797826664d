"""Markdown that is still being written: which blocks are complete, and how they are drawn.

A block is drawn once, when the next one has begun; only the last can still change its shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from markdown_it import MarkdownIt
from rich.console import Console
from rich.markdown import Markdown
from rich.segment import Segment, Segments

from agentls.cli.streams import legible

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[^\n]*\n")


def parser() -> MarkdownIt:
    """CommonMark with tables and strikethrough; HTML is text, so that `Vec<u8>` survives."""
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def rendered(source: str) -> Markdown:
    """Source as something rich can print. Links show their address: no hidden targets."""
    markdown = Markdown("", hyperlinks=False, code_theme="ansi_dark")
    markdown.markup = source
    markdown.parsed = parser().parse(source)
    return markdown


def drawn(console: Console, source: str) -> list[list[Segment]]:
    """The lines of one block as styled text, without empty ones around it."""
    lines = console.render_lines(rendered(source), pad=False)
    full = [at for at, line in enumerate(lines) if any(part.text.strip() for part in line)]
    return lines[full[0] : full[-1] + 1] if full else []


def joined(lines: Iterable[list[Segment]]) -> Segments:
    """Lines as something rich prints with `end=""`."""
    return Segments([part for line in lines for part in (*line, Segment.line())])


class GrowingText:
    """Text that arrives in pieces and leaves in complete blocks."""

    def __init__(self) -> None:
        """Nothing arrived yet."""
        self._parser = parser()
        self._text = ""
        self._held = ""

    def feed(self, piece: str) -> None:
        """Add text, of any length and cut anywhere."""
        piece = self._held + piece
        # A CR may be the first half of a line end: only the next piece tells.
        self._held = "\r" if piece.endswith("\r") else ""
        self._text += legible(piece.removesuffix(self._held).replace("\r\n", "\n"))

    def take_complete(self) -> list[str]:
        """Remove and give the blocks that can no longer change."""
        end = self._text.rfind("\n") + 1
        # An unfinished line may yet turn out to continue the block before it.
        blocks = self._blocks(self._text[:end])
        if len(blocks) < 2:
            return []
        complete = blocks[:-1]
        self._text = self._text[sum(map(len, complete)) :]
        return complete

    def take_all(self) -> list[str]:
        """Remove and give everything that is left, block by block; the text has ended."""
        rest, self._text, self._held = self._text, "", ""
        return self._blocks(rest)

    def tail(self, max_chars: int) -> str:
        """The end of the growing block, small enough to draw many times a second.

        A code block keeps its opening line, so that it is still drawn as code.
        """
        if len(self._text) <= max_chars:
            return self._text
        rest = self._text[-max_chars:]
        rest = rest[rest.find("\n") + 1 :]
        opening = _FENCE.match(self._text)
        return (opening[0] if opening else "") + rest

    def _blocks(self, text: str) -> list[str]:
        """The top-level blocks of a text; joined they are the text."""
        tokens = self._parser.parse(text)
        starts = [t.map[0] for t in tokens if t.level == 0 and t.nesting >= 0 and t.map]
        if not starts:
            return [text] if text else []
        lines = text.split("\n")
        lines = [*(f"{line}\n" for line in lines[:-1]), lines[-1]]
        starts[0] = 0
        ends = [*starts[1:], len(lines)]
        return ["".join(lines[a:b]) for a, b in zip(starts, ends, strict=True)]
