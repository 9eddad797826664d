from __future__ import annotations

import io
import os

import pytest

from agentls.cli.streams import Output, OutputLost, legible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext\r\n", "plain\n\ttext\r\n"),
        ("\x1b]52;c;aGk=\x07", "\\u{1b}]52;c;aGk=\\u{7}"),
        ("safe\rEVIL", "safe\\u{d}EVIL"),
        ("\x9b2J", "\\u{9b}2J"),
        ("a\u202eb\u2066c", "a\\u{202e}b\\u{2066}c"),
        ("👩\u200d💻 می\u200cخواهم é 漢字", "👩\u200d💻 می\u200cخواهم é 漢字"),
    ],
)
def test_what_a_terminal_acts_on_is_shown_and_the_rest_left_alone(text: str, shown: str) -> None:
    assert legible(text) == shown


def test_characters_the_encoding_lacks_get_an_ascii_mark() -> None:
    ascii_stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    utf8_stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    marks = [Output(stream).mark("✓", "done:") for stream in (ascii_stream, utf8_stream)]
    assert marks == ["done:", "✓"]


def test_a_reader_that_left_is_told_apart_from_other_os_errors() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as stream:
        output = Output(stream)
        with pytest.raises(OutputLost) as lost:
            output.line("nobody hears this")
        assert isinstance(lost.value.reason, BrokenPipeError)
        assert not isinstance(lost.value, OSError)
        assert not output.writing
        os.dup2(os.open(os.devnull, os.O_WRONLY), write_end)
