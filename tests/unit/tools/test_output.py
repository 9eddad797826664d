"""How answers and titles are written."""

from __future__ import annotations

from agentls.tools.output import ToolLimits, cap, count, cut_line, one_line


def test_a_title_is_whole_and_on_one_line() -> None:
    assert one_line("git status\nrm -rf /\tx") == "git status ⏎ rm -rf / x"


def test_hidden_characters_are_escaped_and_flagged() -> None:
    shown = one_line("a\u202eb\u200bc\x1b[2J")

    assert shown == (
        "a\\u{202e}b\\u{200b}c\\u{1b}[2J [contains hidden characters, shown as \\u{…}]"
    )


def test_a_long_answer_keeps_head_and_tail() -> None:
    answer = cap("a" * 900 + "z" * 900, ToolLimits(max_output_bytes=600), "ask for less")

    assert answer.startswith("a" * 400)
    assert answer.endswith("z" * 200)
    assert "[… 1200 bytes left out; ask for less]" in answer


def test_a_long_line_says_how_much_more_there_is() -> None:
    assert cut_line("abcdef", 6) == "abcdef"
    assert cut_line("abcdef", 4) == "abcd[… 2 more characters]"


def test_counts() -> None:
    assert [count(1, "line"), count(2, "line"), count(0, "match")] == [
        "1 line",
        "2 lines",
        "0 matches",
    ]
