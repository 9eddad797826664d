"""Calls in text: which text is one, what shows of it, and that slicing changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentls.llm.text_calls.forms import NAMELESS, WrittenCall, fits, may_call, read_calls
from agentls.llm.text_calls.parser import CallParser
from agentls.llm.text_calls.parts import Calls, MadeUpResults, Part, ThoughtEnd, Words
from agentls.llm.text_calls.preview import CallArguments, CallStart
from support.text_replies import ARGUMENTS, CALL, GREP, READ, sliced, texts_of

A_PY = WrittenCall("read_file", ARGUMENTS)
B_PY = WrittenCall("read_file", '{"path": "b.py"}')
CALL_B = CALL.replace("a.py", "b.py")
NAMED = READ.name


def parse(
    pieces: Iterable[str], *, lenient: bool = True, cut: bool = False, thought: bool = False
) -> list[Part]:
    """All parts; neighbouring words, and neighbouring arguments, are one."""
    parser = CallParser((READ, GREP), lenient=lenient)
    parser.thought = thought
    found = [part for piece in pieces for part in parser.feed(piece)]
    merged: list[Part] = []
    for part in [*found, *parser.close(cut=cut)]:
        last = merged[-1] if merged else None
        if isinstance(part, Words) and isinstance(last, Words):
            merged[-1] = Words(last.text + part.text)
        elif isinstance(part, CallArguments) and isinstance(last, CallArguments):
            merged[-1] = CallArguments(last.text + part.text)
        else:
            merged.append(part)
    return merged


def calls(parts: Sequence[Part]) -> list[WrittenCall]:
    return [call for part in parts if isinstance(part, Calls) for call in part.calls]


def words(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Words))


FORMS = [
    (f"<tool_call>{CALL}</tool_call>", [A_PY]),
    (f"<tool_call>\n{CALL}\n</tool_call>", [A_PY]),
    (f"<tool_call>[{CALL}, {CALL_B}]</tool_call>", [A_PY, B_PY]),
    (f"<tool_call>\n{CALL}\n{CALL_B}\n</tool_call>", [A_PY, B_PY]),
    (f"<tool_call>{CALL}</tool_call>\n<tool_call>{CALL_B}</tool_call>", [A_PY, B_PY]),
    (f"<tool_call>{CALL}\n<tool_call>{CALL_B}</tool_call>", [A_PY, B_PY]),
    (f"<tool_call>\n```json\n{CALL}\n```\n</tool_call>", [A_PY]),
    (f"```xml\n<tool_call>{CALL}</tool_call>\n```", [A_PY]),
    (f"```\n<tool_call>{CALL}</tool_call>\n<tool_call>{CALL_B}</tool_call>\n```\n", [A_PY, B_PY]),
    (f"<function_call>{CALL}</function_call>", [A_PY]),
    (f"<tool>{CALL}</tool>", [A_PY]),
    (f"<tool_calls>[{CALL}]</tool_calls>", [A_PY]),
    (f"<function=read_file>{ARGUMENTS}</function>", [A_PY]),
    (f"<function=read_file>\n{ARGUMENTS}\n</function>", [A_PY]),
    (f"<tool_call><function=read_file>{ARGUMENTS}</function></tool_call>", [A_PY]),
    (f"[TOOL_CALLS][{CALL}, {CALL_B}]", [A_PY, B_PY]),
    (f"[TOOL_CALLS] [{CALL}][/TOOL_CALLS]", [A_PY]),
    (f"<|tool_call|>[{CALL}]<|/tool_call|>", [A_PY]),
    (f"<|tool_call|>{CALL}", [A_PY]),
    (f"<|python_tag|>{CALL}", [A_PY]),
    (f"```tool_call\n{CALL}\n```", [A_PY]),
    (f"```json\n{CALL}\n```", [A_PY]),
    (f"```json\n[{CALL},\n {CALL_B}]\n```\n", [A_PY, B_PY]),
    (f"````\n{CALL}\n````", [A_PY]),
    (f"```json\n{CALL}", [A_PY]),
    (f"{CALL}\n{CALL_B}\n", [A_PY, B_PY]),
    (f"[{CALL}, {CALL_B}]", [A_PY, B_PY]),
    ('```json\n{"name": "read_file", "parameters": {"path": "a.py"}}\n```', [A_PY]),
    ('```json\n{"tool": "read_file", "arguments": {"path": "a.py"}}\n```', [A_PY]),
    (f'```json\n{{"function": {CALL}}}\n```', [A_PY]),
    (f'```json\n{{"type": "function", "function": {CALL}}}\n```', [A_PY]),
    (f'```json\n{{"tool_calls": [{CALL}]}}\n```', [A_PY]),
    (
        f'<tool_call>{{"name": "read_file", "arguments": {json.dumps(ARGUMENTS)}}}</tool_call>',
        [A_PY],
    ),
    (f'<tool_call>{{"arguments": {ARGUMENTS}, "name": "read_file"}}</tool_call>', [A_PY]),
    (f"<tool_call>{CALL}}}</tool_call>", [A_PY]),
    (f"<tool_call>{CALL}", [A_PY]),
    (f"<tool_call>{CALL}</function>", [A_PY]),
    ('<tool_call>{"name": "time"}</tool_call>', [WrittenCall("time", "{}")]),
    (
        '<function=grep>{"pattern": "a </function> \\" } <b>"}</function>',
        [WrittenCall("grep", '{"pattern": "a </function> \\" } <b>"}')],
    ),
    (
        '<function=grep>{"pattern": "two\nlines"}</function>',
        [WrittenCall("grep", '{"pattern": "two\\nlines"}')],
    ),
    (
        '<tool_call>{"name": "grep", "arguments": {"pattern": "</think>"}}</tool_call>',
        [WrittenCall("grep", '{"pattern": "</think>"}')],
    ),
]


@pytest.mark.parametrize(("markup", "expected"), FORMS)
def test_forms_of_calls(markup: str, expected: list[WrittenCall]) -> None:
    for pieces in ([markup], list(markup)):
        parts = parse(pieces)
        assert calls(parts) == expected
        assert words(parts) == ""


@pytest.mark.parametrize(("markup", "expected"), FORMS)
def test_text_before_and_after_shows_without_the_markup(
    markup: str, expected: list[WrittenCall]
) -> None:
    parts = parse([f"I look.\n\n{markup}"])
    assert words(parts) == "I look."
    assert calls(parts) == expected


BAD = [
    ('<tool_call>{"name": "read_file", "arguments": {"path": }</tool_call>', "read_file"),
    ('<tool_call>{"name": "read_file, "arguments": {}}</tool_call>\n', "read_file"),
    ("<tool_call>read_file(a.py)</tool_call>", "read_file"),
    ("<tool_call>{'name': 'read_file'}</tool_call>", NAMELESS),
    ("<tool_call>[1, 2]</tool_call>", NAMELESS),
    ("<tool_call></tool_call>", NAMELESS),
    ("<function=read_file>path a.py</function>", "read_file"),
    ("<function=read_file>[1]</function>", "read_file"),
    ('```tool_call\n{"name": "read_file", \n```', "read_file"),
    ('<tool_call>{"name": "read_file", "arguments": "a.py"}</tool_call>', "read_file"),
    ('<tool_call>{"name": "read_file", "arguments": [1]}</tool_call>', "read_file"),
    (f'<tool_call>{{"name": "a", "arguments": {"[" * 2000}</tool_call>', "a"),
]


@pytest.mark.parametrize(("markup", "name"), BAD)
def test_a_bad_call_is_one_to_repair(markup: str, name: str) -> None:
    for pieces in ([f"{markup}Then."], list(f"{markup}Then.")):
        parts = parse(pieces)
        assert [(call.name, call.valid) for call in calls(parts)] == [(name, False)]
    assert words(parse([f"{markup}\nThen."])) == "Then."


def test_a_tool_that_is_not_known_is_called_all_the_same() -> None:
    parts = parse(['<tool_call>{"name": "fly", "arguments": {"to": 1}}</tool_call>'])
    assert calls(parts) == [WrittenCall("fly", '{"to": 1}')]


PROSE = [
    "Use `<tool_call>` for it.",
    f"Write `<tool_call>{CALL}</tool_call>` for it.",
    "The <tool_call> tag begins a call.",
    "The <tool> tag.",
    "a <b> [c](d) {e} `f`",
    '{"name": "package", "version": "1.0.0"}',
    '```json\n{"name": "package", "version": "1.0.0"}\n```',
    '```json\n{"a": 1}\n```\n',
    f"```python\n{CALL}\n<tool_call>{CALL}</tool_call>\n```",
    f"Hi.\n<think>\n<tool_call>{CALL}</tool_call>\n",
    f"Hi.\n<think>\n```json\n{CALL}\n```\n</think>\nBye.",
    f"Like {CALL} here.",
    '[1, 2]: {"name"\n\n  [x] done\n{\n{\n',
    "\n\n  indented\n\n\ttext \n",
    "```\nnever closed\n{",
    "~~~\n``` a\n`b` ``c``",
    "```json",
    "<tool_",
    "``",
]


@pytest.mark.parametrize("whole", PROSE)
@pytest.mark.parametrize("lenient", [True, False])
def test_what_is_no_call_is_shown_as_it_is(whole: str, lenient: bool) -> None:
    for pieces in ([whole], list(whole)):
        assert parse(pieces, lenient=lenient) == [Words(whole)]


UNMEANT = [
    '<tool_call>{"name": "fly", "arguments": {}}</tool_call>',
    "<tool_call>read_file(a.py)</tool_call>",
    '<tool>{"name": "read_file", "arguments": [1]}</tool>',
    f"```xml\n<tool_call>{CALL}</tool_call>\n```",
    '```json\n{"name": "read_file", "arguments": {}}\n```',
    '```json\n{"name": "read_file", "arguments": {"path": "a", "other": 1}}\n```',
    '{"name": "read_file", "arguments": "a.py"}',
    '{"name": "read_file", "arguments": {"path": "a"}, ...}',
]


@pytest.mark.parametrize("whole", UNMEANT)
def test_a_model_with_calls_has_to_be_certain(whole: str) -> None:
    for pieces in ([whole], list(whole)):
        assert parse(pieces, lenient=False) == [Words(whole)]


def test_a_call_is_announced_as_it_grows() -> None:
    parser = CallParser((READ,), lenient=True)
    assert parser.feed("Hi <tool_ca") == [Words("Hi ")]
    assert parser.feed('ll>{"name": "read_file", "argu') == []
    assert parser.feed('ments": {"pa') == [CallStart("read_file"), CallArguments('{"pa')]
    assert parser.feed('th": "a.py"') == [CallArguments('th": "a.py"')]
    assert parser.feed("}}") == [CallArguments("}")]
    markup = f"<tool_call>{CALL}</tool_call>"
    assert parser.feed("</tool_call>") == [Calls(markup, (A_PY,), sure=True, started=True)]


def test_words_are_released_when_they_cannot_be_a_call() -> None:
    parser = CallParser((READ,), lenient=False)
    assert parser.feed('{"na') == []
    assert parser.feed('me": "re') == []
    assert parser.feed("x") == [Words('{"name": "rex')]
    assert parser.feed("\n```json\n") == []
    assert parser.feed("{") == []
    assert parser.feed('"b') == [Words('\n```json\n{"b')]


def test_what_a_model_makes_up_behind_its_calls_means_nothing() -> None:
    for name in ("tool_result", "tool_response", "tool_output"):
        whole = f"<tool_call>{CALL}</tool_call>\n<{name} x>made up</{name}>\nSo it is 42."
        for pieces in ([whole], list(whole)):
            parts = parse(pieces)
            assert calls(parts) == [A_PY]
            assert parts[-1] == MadeUpResults()
    assert parse(["A <tool_result> is text."]) == [Words("A <tool_result> is text.")]


def test_thinking_without_its_opening_tag_ends_calls_too() -> None:
    markup = f"<tool_call>{CALL}</tool_call>"
    assert parse([f"hm {markup} no </think> Hi."])[-2:] == [ThoughtEnd(), Words("Hi.")]
    assert calls(parse(["<tool_call>{oh </think>", markup])) == [A_PY]
    assert parse(["a</think>b"], thought=True) == [
        Words("a"),
        ThoughtEnd(),
        Words("</think>b"),
    ]


def test_a_cut_call_is_never_words() -> None:
    for whole in ("<tool_call>", "<tool_call>read", '<tool_call>{"name": "read_file", "argu'):
        assert words(parse([whole], cut=True)) == ""
        assert [call.valid for call in calls(parse([whole], cut=True))] == [False]


ALPHABET = (
    "<tool_call>", "</tool_call>", "<function=read_file>", "</function>", "[TOOL_CALLS]",
    "<think>", "</think>", "<tool_result>", "```json\n", "```\n", "```tool_call\n", "```", "`",
    CALL, f"[{CALL}]", '{"name": "read_file"', '{"name": "x"}', "{", "}", "[", "]", '"', "\\",
    "\n", " ", "a", ",", "\r\n", "<", ARGUMENTS,
)  # fmt: skip


@settings(max_examples=400)
@given(texts_of(*ALPHABET), st.lists(st.integers(0, 2000)), st.booleans(), st.booleans())
def test_any_slicing_gives_the_same(whole: str, cuts: list[int], lenient: bool, cut: bool) -> None:
    expected = parse([whole], lenient=lenient, cut=cut)
    assert parse(sliced(whole, cuts), lenient=lenient, cut=cut) == expected
    assert parse(whole, lenient=lenient, cut=cut) == expected


@settings(max_examples=200)
@given(texts_of(*ALPHABET))
def test_nothing_is_lost_for_who_needs_the_text_as_it_was(whole: str) -> None:
    parts = parse([whole.replace("</think>", "").replace("<tool_result>", "")], lenient=False)
    shown = "".join(
        part.text if isinstance(part, Words) else part.raw
        for part in parts
        if isinstance(part, Words | Calls)
    )
    assert shown == whole.replace("</think>", "").replace("<tool_result>", "")


HARD = [
    "{", "[", "`", "<", "\n", " ", "{\n", "[\n", "\n{", "<tool_call>", "<tool_call>{", "```json\n",
    "```json\n{", '{"name": "read_file", ', '<tool_call>{"a</tool_call>', "```\n", "[TOOL_CALLS][",
    f"<tool_call>{CALL}</tool_call>\n", "<function=read_file>", "x", '"', "<think>\n", "\\",
]  # fmt: skip


@pytest.mark.parametrize("piece", HARD)
def test_little_is_held_in_the_buffer(piece: str) -> None:
    """What was read is never read again: the text that waits stays short, whatever comes."""
    for lenient in (True, False):
        parser = CallParser((READ,), lenient=lenient)
        for _ in range(2000):
            parser.feed(piece)
            assert len(parser._text) <= 400
        parser.close(cut=False)


# --- the JSON of calls -----------------------------------------------------------------------


def test_half_characters_do_not_get_out() -> None:
    assert read_calls('{"name": "a", "arguments": {"b": "\\ud83d"}}') == [
        WrittenCall("a", '{"b": "�"}')
    ]


def test_nesting_without_end_is_no_call() -> None:
    assert read_calls('{"name": "a", "arguments": ' + "[" * 100_000) is None


@pytest.mark.parametrize(
    ("head", "verdict"),
    [
        ("", None),
        ("[ {", None),
        ('{ "na', None),
        ('{"name": "read', None),
        ('{"name": "read_file"', True),
        ('{"name": "read_files"', False),
        ('{"function": {', True),
        ('{"arguments"', True),
        ('{"version"', False),
        ('{"name": 1', False),
        ("{1", False),
        ("x", False),
    ],
)
def test_a_beginning_tells_whether_there_may_be_a_call(head: str, verdict: bool | None) -> None:
    assert may_call(head, {NAMED}) is verdict


def test_a_call_fits_when_the_tool_can_take_it() -> None:
    tools = (READ, GREP)
    assert fits(A_PY, tools)
    assert not fits(WrittenCall("read_file", "{}"), tools)
    assert not fits(WrittenCall("read_file", '{"path": "a", "mode": "b"}'), tools)
    assert not fits(WrittenCall("fly", "{}"), tools)
    assert not fits(WrittenCall("grep", "x", valid=False), tools)
