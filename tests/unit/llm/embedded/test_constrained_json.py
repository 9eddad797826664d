"""Reading constrained replies: any slicing, any character, cut anywhere."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentls.llm.embedded.constrained_json import Answer, Arguments, CallStart, ReplyParser

TEXT = st.text(st.characters(codec="utf-8"), max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def sliced(text: str, cuts: list[int]) -> list[str]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[start:end] for start, end in pairwise(places)]


def mended(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def parse(pieces: list[str]) -> tuple[str, list[tuple[str, str]], bool]:
    """The answer, the calls as (name, arguments), and whether the reply was whole."""
    parser = ReplyParser()
    answer = ""
    calls: list[tuple[str, str]] = []
    parts = [part for piece in pieces for part in parser.feed(piece)] + list(parser.close())
    for part in parts:
        match part:
            case Answer():
                answer += part.text
            case CallStart():
                calls.append((part.name, ""))
            case Arguments():
                calls[-1] = (calls[-1][0], calls[-1][1] + part.text)
    return mended(answer), calls, parser.complete


@given(
    TEXT,
    st.lists(st.integers(min_value=0), max_size=12),
    st.booleans(),
    st.sampled_from([None, 2]),
)
def test_an_answer_is_character_true_however_it_is_sliced(
    answer: str, cuts: list[int], ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps({"answer": answer}, ensure_ascii=ascii_only, indent=indent)
    assert parse(sliced(text, cuts)) == (answer, [], True)


@given(
    TEXT,
    st.dictionaries(TEXT, JSON, max_size=4),
    st.lists(st.integers(min_value=0), max_size=12),
    st.sampled_from([None, 2]),
)
def test_a_call_is_the_same_however_it_is_sliced(
    name: str, arguments: dict[str, object], cuts: list[int], indent: int | None
) -> None:
    text = json.dumps({"tool": name, "arguments": arguments}, indent=indent)
    answer, calls, complete = parse(sliced(text, cuts))
    assert (answer, complete) == ("", True)
    assert [(n, json.loads(a)) for n, a in calls] == [(name, arguments)]


@given(st.dictionaries(TEXT, JSON, max_size=4), st.data())
def test_a_call_that_is_cut_anywhere_is_never_whole(
    arguments: dict[str, object], data: st.DataObject
) -> None:
    text = json.dumps({"tool": "write_file", "arguments": arguments})
    # The last brace closes the reply, not the call.
    end = data.draw(st.integers(min_value=0, max_value=len(text) - 2))
    answer, _, complete = parse([text[:end]])
    assert (answer, complete) == ("", False)


@given(TEXT, st.data())
def test_an_answer_that_is_cut_keeps_what_came(answer: str, data: st.DataObject) -> None:
    text = json.dumps({"answer": answer})
    end = data.draw(st.integers(min_value=0, max_value=len(text) - 2))
    got, calls, complete = parse([text[:end]])
    assert (calls, complete) == ([], False)
    assert answer.startswith(got.removesuffix("\ufffd"))


def test_text_streams_as_soon_as_it_is_certain() -> None:
    parser = ReplyParser()
    pieces = ['{"ans', 'wer": "a', "b\\", "n\\u00", 'e9c"', "}"]
    assert [list(parser.feed(piece)) for piece in pieces] == [
        [],
        [Answer("a")],
        [Answer("b")],
        [Answer("\n")],
        [Answer("éc")],
        [],
    ]


def test_arguments_stream_and_end_at_their_own_brace() -> None:
    parser = ReplyParser()
    pieces = ['{"tool": "grep", "argu', 'ments": {"pattern": "}\\', '"{"', "}", "}\n"]
    assert [list(parser.feed(piece)) for piece in pieces] == [
        [],
        [CallStart("grep"), Arguments('{"pattern": "}\\')],
        [Arguments('"{"')],
        [Arguments("}")],
        [],
    ]


@pytest.mark.parametrize(
    "text",
    ["Plain words.", "# Title\n\n- a", "{x} is a set", '{"name": "grep"}', "[1, 2]", '"quoted"'],
)
def test_what_is_no_reply_object_is_an_answer_as_it_stands(text: str) -> None:
    assert parse([text]) == (text, [], True)
    assert parse(list(text)) == (text, [], True)


def test_keys_in_the_other_order_are_read_at_the_end() -> None:
    assert parse(['{"arguments": {"path": "a.py"}, ', '"tool": "read_file"}']) == (
        "",
        [("read_file", '{"path": "a.py"}')],
        True,
    )


@pytest.mark.parametrize("text", ["", "  ", "{", '{ "', '{"to', '{"tool": "gr', '{"answer"'])
def test_a_reply_that_hardly_began_is_incomplete(text: str) -> None:
    assert parse([text]) == ("", [], False)


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("name", [r"\q", r"\u12"])
def test_a_name_that_is_no_json_makes_it_an_answer_as_it_stands(name: str, size: int) -> None:
    text = f'{{"tool": "{name}", "arguments": {{"a": 1}}}}'
    assert parse([text[at : at + size] for at in range(0, len(text), size)]) == (text, [], True)
