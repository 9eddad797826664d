from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from agentls.cli.markdown import GrowingText, rendered

ANSWER = """\
Intro of two
lines with Vec<u8> and `x < y`.

# Title

- one
- two

  more of two

```python
def f():

    # not a heading
    return 1
```

| a | b |
|---|---|
| 1 | 2 |

Setext
------

> quote

The end."""


def draw(source: str, width: int = 60) -> str:
    out = io.StringIO()
    Console(file=out, width=width, markup=False).print(rendered(source))
    return out.getvalue()


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


BLOCKS = [
    "Intro of two\nlines with Vec<u8> and `x < y`.\n\n",
    "# Title\n\n",
    "- one\n- two\n\n  more of two\n\n",
    "```python\ndef f():\n\n    # not a heading\n    return 1\n```\n\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n",
    "Setext\n------\n\n",
    "> quote\n\n",
    "The end.",
]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_blocks_leave_whole_and_in_order_however_the_text_is_cut(size: int) -> None:
    growing = GrowingText()
    left = []
    for piece in pieces(ANSWER, size):
        growing.feed(piece)
        left += growing.take_complete()
    assert left == BLOCKS[: len(left)]
    assert left + growing.take_all() == BLOCKS


def test_a_block_leaves_as_soon_as_the_next_has_a_whole_line() -> None:
    growing = GrowingText()
    growing.feed("First.\n\nSecond")
    assert growing.take_complete() == []
    growing.feed(".\n")
    assert growing.take_complete() == ["First.\n\n"]


@given(
    st.lists(st.sampled_from(["a", "\n", "\n\n", "# ", "- ", "```\n", "    ", "|", "---\n", "\r"]))
)
def test_no_cut_loses_or_invents_text(parts: list[str]) -> None:
    growing = GrowingText()
    whole = GrowingText()
    left = []
    for part in parts:
        growing.feed(part)
        whole.feed(part)
        left += growing.take_complete()
    assert "".join(left + growing.take_all()) == "".join(whole.take_all())


def test_an_unfinished_line_does_not_end_the_block_before_it() -> None:
    growing = GrowingText()
    growing.feed("a paragraph\n#")
    assert growing.take_complete() == []
    growing.feed("hash, still the paragraph\n\n")
    assert growing.take_complete() == []
    growing.feed("next\n")
    assert growing.take_complete() == ["a paragraph\n#hash, still the paragraph\n\n"]


def test_a_long_code_block_is_drawn_from_its_end_and_as_code() -> None:
    growing = GrowingText()
    growing.feed("```python\n" + "".join(f"line{n} = {n}\n" for n in range(5000)))
    tail = growing.tail(400)
    assert len(tail) < 450
    assert tail.startswith("```python\nline")
    assert tail.endswith("line4999 = 4999\n")


def test_html_and_links_hide_nothing() -> None:
    drawn = draw(
        "Use Vec<u8>, <b>not</b> [docs](https://evil.example/x) ![pic](https://e.example/p)"
    )
    assert "Vec<u8>" in drawn
    assert "<b>not</b>" in drawn
    assert "docs (https://evil.example/x)" in drawn
    assert "\x1b]8" not in drawn


def test_terminal_codes_are_shown_even_when_cut_apart() -> None:
    growing = GrowingText()
    for piece in ("safe\r", "\nnext\r", "X\x1b", "[2J"):
        growing.feed(piece)
    assert growing.take_all() == ["safe\nnext\\u{d}X\\u{1b}[2J"]
