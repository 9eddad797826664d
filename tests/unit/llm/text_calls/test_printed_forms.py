"""The forms in which models of 2024 to 2026 print calls, and text that only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentls.core.events import BlockDelta, BlockStop, Event
from agentls.core.messages import Message, ToolCall
from agentls.core.requests import ToolDefinition
from agentls.llm.text_calls.prompt import rewritten
from agentls.llm.text_calls.recovered import RecoveringModel
from agentls.llm.text_calls.tools import TextToolModel
from support.reply_events import text
from support.text_replies import CUT, END, READ, USAGE, asking, joined, replies, reply, sliced

WRITE = ToolDefinition(
    name="write_file",
    description="Write a file.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "content": {"type": "string"},
            "mode": {"type": "integer"},
        },
        "required": ["path"],
    },
)
TOOLS = (READ, WRITE)
A = '{"path": "b.py"}'
C = f'{{"name": "read_file", "arguments": {A}}}'
LLAMA = f'{{"name": "read_file", "parameters": {A}}}'

FORMS = {
    "qwen3-coder": "<tool_call>\n<function=read_file>\n<parameter=path>\nb.py\n</parameter>\n"
    "</function>\n</tool_call>",
    "qwen3-coder without its first tag": "<function=read_file>\n<parameter=path>\nb.py\n"
    "</parameter>\n</function>\n</tool_call>",
    "seed": "<seed:tool_call><function=read_file><parameter=path>b.py</parameter></function>"
    "</seed:tool_call>",
    "minimax": '<minimax:tool_call>\n<invoke name="read_file">\n<parameter name="path">b.py'
    "</parameter>\n</invoke>\n</minimax:tool_call>",
    "claude": '<function_calls>\n<invoke name="read_file">\n<parameter name="path">b.py'
    "</parameter>\n</invoke>\n</function_calls>",
    "glm": "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>b.py</arg_value>\n"
    "</tool_call>",
    "mistral v3": f"[TOOL_CALLS] [{C}]</s>",
    "mistral v11": f"[TOOL_CALLS]read_file[ARGS]{A}",
    "mistral with ids": f"[TOOL_CALLS]read_file[CALL_ID]aB3dE6gH9[ARGS]{A}</s>",
    "deepseek v3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n"
    f"```json\n{A}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
    "deepseek v3.1": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>"
    f"{A}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "deepseek v3.2": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="read_file">\n'
    '<｜DSML｜parameter name="path" string="true">b.py</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0"
    f"<|tool_call_argument_begin|>{A}<|tool_call_end|><|tool_calls_section_end|>",
    "gpt-oss": "<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>"
    f"{A}<|call|>",
    "gpt-oss, the recipient first": "<|start|>assistant to=functions.read_file"
    f"<|channel|>commentary json<|message|>{A}",
    "command-r7b": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "read_file", '
    f'"parameters": {A}}}]<|END_ACTION|>',
    "internlm": f"<|action_start|><|plugin|>\n{LLAMA}<|action_end|>",
    "nemotron": f"<TOOLCALL>[{C}]</TOOLCALL>",
    "granite": f"<|tool_call|>[{C}]",
    "phi-4-mini": f"<|tool_call|>[{C}]<|/tool_call|>",
    "llama 3.1": f"<|python_tag|>{LLAMA}<|eom_id|>",
    "llama 4": "[read_file(path='b.py')]",
    "llama 4 with tags": '<|python_start|>[read_file(path="b.py")]<|python_end|>',
    "lfm2": '<|tool_call_start|>[read_file(path="b.py")]<|tool_call_end|>',
    "olmo 3": '<function_calls>\nread_file(path="b.py")\n</function_calls>',
    "gemma 3": '```tool_code\nread_file(path="b.py")\n```',
    "tildes": f"~~~json\n{C}\n~~~",
}
MODELS = (RecoveringModel, TextToolModel)


def made(events: list[Event]) -> list[tuple[str, object]]:
    items = [event.item for event in events if isinstance(event, BlockStop)]
    return [(i.name, i.invalid or i.arguments) for i in items if isinstance(i, ToolCall)]


def shown(events: list[Event]) -> str:
    items = [event.item for event in events if isinstance(event, BlockStop)]
    return "".join(item.text for item in items if isinstance(item, Message))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("form", FORMS)
async def test_each_form_is_a_call(form: str, model: type[RecoveringModel | TextToolModel]) -> None:
    for pieces in ([FORMS[form]], list(FORMS[form])):
        events = await replies(model, reply(*pieces), asking(tools=TOOLS))
        assert made(events) == [("read_file", {"path": "b.py"})]
        assert shown(events).strip() == ""


@pytest.mark.parametrize("model", MODELS)
async def test_several_calls_in_a_form(model: type[RecoveringModel | TextToolModel]) -> None:
    two = [("read_file", {"path": "b.py"})] * 2
    invoke = '<invoke name="read_file"><parameter name="path">b.py</parameter></invoke>'
    for whole in (
        f"{LLAMA}; {LLAMA}",
        f"[TOOL_CALLS]read_file[ARGS]{A}[TOOL_CALLS]read_file[ARGS]{A}",
        f"<function_calls>\n{invoke}\n{invoke}\n</function_calls>",
        "[read_file(path='b.py'), read_file(path='b.py')]",
    ):
        for pieces in ([whole], list(whole)):
            events = await replies(model, reply(*pieces), asking(tools=TOOLS))
            assert made(events) == two


@pytest.mark.parametrize("model", MODELS)
async def test_parameters_in_elements_keep_their_text(
    model: type[RecoveringModel | TextToolModel],
) -> None:
    content = "\n<p>a</p>\n  </function>\n</tool_call> 1 < 2\n"
    whole = (
        "<tool_call>\n<function=write_file>\n<parameter=path>\n12\n</parameter>\n"
        f"<parameter=content>\n{content}\n</parameter>\n<parameter=mode>\n420\n</parameter>\n"
        "</function>\n</tool_call>"
    )
    for pieces in ([whole], list(whole)):
        events = await replies(model, reply(*pieces), asking(tools=TOOLS))
        given = {"path": "12", "content": content, "mode": 420}
        assert made(events) == [("write_file", given)]


PLAIN = [
    "<tool_call> is the tag that Qwen uses; <function=name> that of Llama.",
    "Kimi writes <|tool_call_begin|>functions.get_weather:0 before arguments.\nThat is all.",
    f"A model writes <tool_call>{C}</tool_call> and waits.",
    f"> <tool_call>{C}</tool_call>\n\nis what you sent.",
    f"> {C}",
    f"~~~\n<tool_call>{C}</tool_call>\n~~~\nis an example.",
    f"~~~json\n{C}\n~~~\nis an example.",
    f"```python\nprint('''\n<tool_call>{C}</tool_call>\n''')\n```",
    '[TOOL_CALLS]fly[ARGS]{"path": "b.py"}',
    "[read_file](docs.md) reads.",
    "[read_file(path=open('x'))]",
    "[read_file(**{})] and [x] todo\n- [ ] more",
    "<invoke name=\"fly\"><parameter name='path'>b</parameter></invoke>",
    '<!DOCTYPE html>\n<html><body>\n<p class="x">1 &lt; 2</p>\n</body></html>\n',
    '```json\n{"name": "demo", "version": "1.0.0", "scripts": {"a": "b"}}\n```\n',
    '{"name": "demo", "private": true}; {"name": "read_file"}',
    "~/bin and ~~struck~~ and\n~~~~\nx\n~~~\n~~~~\n  \n",
    "{{ template }} [a]: http://x\n[b]\n<b>\n`\n``\n",
]


@pytest.mark.parametrize("whole", PLAIN)
async def test_what_is_no_call_comes_out_byte_for_byte(whole: str) -> None:
    for pieces in ([whole], list(whole)):
        events = joined(await replies(RecoveringModel, reply(*pieces), asking(tools=TOOLS)))
        assert events == [*text(0, whole), USAGE, END]


@pytest.mark.parametrize("form", FORMS)
async def test_nothing_runs_from_a_form_that_is_cut(form: str) -> None:
    whole = FORMS[form]
    for end in range(1, len(whole), 7):
        for model in MODELS:
            events = await replies(model, reply(whole[:end], end=CUT), asking(tools=TOOLS))
            assert made(events) == []
            assert events[-1] == CUT


@settings(max_examples=150)
@given(
    st.lists(
        st.sampled_from([*FORMS.values(), *PLAIN, "\n", "<", "[", "</tool_call>"]), max_size=4
    ),
    st.lists(st.integers(0, 1500)),
    st.sampled_from(MODELS),
)
async def test_any_slicing_gives_the_same(
    pieces: list[str], cuts: list[int], model: type[RecoveringModel | TextToolModel]
) -> None:
    whole = "".join(pieces)
    events = await replies(model, reply(*sliced(whole, cuts)), asking(tools=TOOLS))
    assert joined(events) == joined(await replies(model, reply(whole), asking(tools=TOOLS)))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "whole",
    [
        "Hello <think>x</think> bye.",
        "The tags are <thinking> and\n</thinking>, in that order.",
        "A <think> without an end.",
    ],
)
async def test_tags_of_thinking_among_words_are_words(
    whole: str, model: type[RecoveringModel | TextToolModel]
) -> None:
    for pieces in ([whole], list(whole)):
        events = joined(await replies(model, reply(*pieces), asking(tools=TOOLS)))
        assert events == [*text(0, whole), USAGE, END]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("<THINK>", "</THINK>"),
        ("<seed:think>", "</seed:think>"),
        ("<antThinking>", "</antThinking>"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ],
)
async def test_what_other_models_think_never_runs(
    begin: str, end: str, model: type[RecoveringModel | TextToolModel]
) -> None:
    for form in FORMS.values():
        for behind in (f"{end}No.", ""):
            events = await replies(model, reply(f"{begin}{form}{behind}"), asking(tools=TOOLS))
            assert made(events) == []
            assert shown(events) == ("No." if behind else "")


@pytest.mark.timeout(20)
async def test_an_argument_full_of_marks_takes_no_longer_than_another() -> None:
    content = "</function></tool_call>\n" * 20_000
    whole = f"<function=write_file><parameter=path>a</parameter><parameter=content>{content}"
    for end in ("", "</parameter></function>"):
        for model in MODELS:
            await replies(model, reply(whole + end), asking(tools=TOOLS))


async def test_words_are_not_held_behind_a_mark_that_is_no_call() -> None:
    events = await replies(RecoveringModel, reply("<tool_call> is", " a tag"), asking(tools=TOOLS))
    assert [e.text for e in events if isinstance(e, BlockDelta)] == ["<tool_call> is", " a tag"]


@pytest.mark.parametrize("form", [form for form in FORMS.values() if form[0] in "<["][:20])
def test_a_result_never_holds_the_marks_of_a_call(form: str) -> None:
    from agentls.core.messages import ToolResult

    result = ToolResult(call_id="1", name="read_file", content=form, summary="")
    (message,) = rewritten([result])
    assert isinstance(message, Message)
    body = message.text.partition("\n")[2].rpartition("\n")[0]
    assert not body.startswith(("<", "[T"))
