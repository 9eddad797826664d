"""The marks that models put around calls and thinking in their text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from agentls.llm.text_calls.think_tags import THINK_TAGS

_CLOSERS: Mapping[str, str] = MappingProxyType(
    {
        "<tool_call>": "</tool_call>",
        "<tool_calls>": "</tool_calls>",
        "<function_call>": "</function_call>",
        "<function_calls>": "</function_calls>",
        "<tool_use>": "</tool_use>",
        "<tool>": "</tool>",
        "<|tool_call|>": "<|/tool_call|>",
        "<|python_tag|>": "",
        "[TOOL_CALLS]": "[/TOOL_CALLS]",
        "<minimax:tool_call>": "</minimax:tool_call>",
        "<seed:tool_call>": "</seed:tool_call>",
        "<TOOLCALL>": "</TOOLCALL>",
        "<|START_ACTION|>": "<|END_ACTION|>",
        "<|action_start|>": "<|action_end|>",
        "<|python_start|>": "<|python_end|>",
        "<|tool_call_start|>": "<|tool_call_end|>",
        "<|tool_calls_section_begin|>": "<|tool_calls_section_end|>",
        "<|tool_call_begin|>": "<|tool_call_end|>",
        "<\uff5ctool\u2581calls\u2581begin\uff5c>": "<\uff5ctool\u2581calls\u2581end\uff5c>",
        "<\uff5ctool\u2581call\u2581begin\uff5c>": "<\uff5ctool\u2581call\u2581end\uff5c>",
        "<\uff5cDSML\uff5cfunction_calls>": "</\uff5cDSML\uff5cfunction_calls>",
        "<\uff5cDSML\uff5ctool_calls>": "</\uff5cDSML\uff5ctool_calls>",
        "<|channel|>commentary to=": "<|call|>",
        "<|start|>assistant<|channel|>commentary to=": "<|call|>",
        "<|start|>assistant to=": "<|call|>",
    }
)
_STRONG = frozenset({"<tool_call>", "<function_call>", "<|tool_call|>"})
_SHORT = frozenset({"<|tool_call|>", "<|python_tag|>", "[TOOL_CALLS]"})
_ENDS_OF_TURN = (
    *("</s>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|call|>"),
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
)
_FUNCTION = re.compile(r'<(?:function=([\w.-]{1,64})|invoke name="([\w.-]{1,64})")>')
_FUNCTION_BEGUN = re.compile(r'<(?:function=[\w.-]{0,64}|invoke name="[\w.-]{0,64}"?)\Z')
_RESULTS = ("<tool_result", "<tool_response", "<tool_output", "<function_result", "<|tool_result")
_TOOL_FENCES = frozenset({"tool_call", "tool_calls", "tool_use", "function_call", "tool_code"})
_JSON_FENCES = frozenset({"", "json", "jsonc", "json5", "tool", "xml"})

TagKind = Literal["call", "call_end", "result", "think", "think_end"]
FenceKind = Literal["tool", "json", "other"]


@dataclass(frozen=True, slots=True)
class Opener:
    """What begins a call. `name` is the tool's where the tag itself says it.

    `strong` tags mean a call whatever stands in them; others only around JSON. Behind `short` ones
    the call ends with its JSON.
    """

    text: str
    closer: str
    name: str = ""
    strong: bool = False
    short: bool = False


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag as it stands in the text."""

    kind: TagKind
    text: str
    opener: Opener | None = None


_OPENERS: Mapping[str, Opener] = MappingProxyType(
    {
        text: Opener(text, closer, strong=text in _STRONG, short=text in _SHORT)
        for text, closer in _CLOSERS.items()
    }
)
_TAGS: Mapping[str, Tag] = MappingProxyType(
    {
        **{text: Tag("call", text, opener) for text, opener in _OPENERS.items()},
        **{
            text: Tag("call_end", text)
            for text in (*_CLOSERS.values(), "</function>", "</invoke>", *_ENDS_OF_TURN)
            if text
        },
        **{text: Tag("result", text) for text in _RESULTS},
        **{text: Tag("think", text) for text in THINK_TAGS},
        **{text: Tag("think_end", text) for text in THINK_TAGS.values()},
    }
)
_MAX_TAG_CHARS = 80
"""No tag is longer; nothing has to be held back further."""


def tag_at(text: str, at: int) -> Tag | Literal["none", "begun"]:
    """The tag at a place; "begun" when the text ends before that is certain."""
    rest = text[at : at + _MAX_TAG_CHARS]
    if found := _FUNCTION.match(rest):
        closer = "</function>" if found[1] else "</invoke>"
        name = found[1] or found[2]
        return Tag("call", found[0], Opener(found[0], closer, name, strong=True))
    for mark, tag in _TAGS.items():
        if rest.startswith(mark):
            return tag
    heads = ("<function=", '<invoke name="')
    is_begun = _FUNCTION_BEGUN.match(rest) or any(head.startswith(rest) for head in heads)
    return "begun" if is_begun or begins(rest, _TAGS) else "none"


def begins(rest: str, tags: Iterable[str]) -> bool:
    """Whether a text may be the beginning of one of these tags."""
    return any(tag.startswith(rest) for tag in tags)


class Fence:
    """The code fence that is open; finds the line that closes it."""

    def __init__(self, ticks: str, info: str = "") -> None:
        """`ticks` are the backticks or tildes that opened it, `info` what stood behind them."""
        self.kind = _fence_kind(info)
        self._ticks = ticks
        self._mid_line = False

    def line(self, text: str, at: int, final: bool) -> tuple[int, bool] | None:
        """Where the line at `at`, or what there is of it, ends, and whether it closes the fence.

        None when that is not certain yet.
        """
        line_end = text.find("\n", at)
        end = len(text) if line_end < 0 else line_end + 1
        closes = False
        if not self._mid_line:
            line = text[at:end].strip()
            is_ticks = not line.strip(self._ticks[:1])
            if is_ticks and line_end < 0 and not final and end - at < _MAX_TAG_CHARS:
                return None
            closes = is_ticks and len(line) >= len(self._ticks)
        self._mid_line = line_end < 0
        return end, closes


def _fence_kind(info: str) -> FenceKind:
    words = info.split()
    language = words[0].lower() if words else ""
    if language in _TOOL_FENCES:
        return "tool"
    return "json" if language in _JSON_FENCES else "other"
