"""What a failure of a pool's member means, and who can take a request at all."""

from __future__ import annotations

import pytest

from agentls.core.errors import (
    BadRequest,
    ModelError,
    RateLimited,
    Unreachable,
)
from agentls.core.messages import AudioBlock, ImageBlock, Message, TextBlock
from agentls.core.requests import Capabilities, ModelInfo, ModelRequest, ToolDefinition
from support.pool_members import (
    Member,
    Time,
    ask,
    fails,
    good,
    pooled,
)

# --- what failures mean --------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_bad_request_is_raised_at_once(status: int) -> None:
    bad = fails(status, "a answered: messages must not be empty.")
    one, two = Member("a", [bad]), Member("b", good())
    events, error = await ask(pooled(one, two))
    assert (events, error, two.requests) == ([], bad, [])


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "prompt is too long: 200001 tokens > 200000 maximum."),
        (400, "This model's maximum context length is 8192."),
        (413, "Request too large for model x on tokens per minute (TPM): Limit 6000."),
        (404, "The model `gpt-9` does not exist."),
        (400, "gpt-9 is not a valid model ID."),
        (400, "The model `llama2` has been decommissioned."),
        (400, "Invalid content type. image_url is only supported by certain models."),
        (400, "Unsupported value: 'temperature' does not support 0.5 with this model."),
        (400, "Unrecognized request argument supplied: top_k."),
        (400, "messages.1.content.0.thinking: Invalid `signature`."),
        (400, "User location is not supported for the API use."),
        (None, "The model a-1 cannot take images."),
        (405, "a answered 405 (method not allowed)."),
    ],
)
async def test_a_refusal_about_the_member_only_rules_that_out(
    status: int | None, words: str
) -> None:
    refusal = BadRequest(words, provider="a", status=status)
    one, two = Member("a", [refusal]), Member("b", [fails(503)], good())
    pool = pooled(one, two)
    _, error = await ask(pool)
    assert (error, len(one.requests), len(two.requests)) == (None, 1, 2)
    await ask(pool)
    assert len(one.requests) == 2  # it is not last in line for that


@pytest.mark.parametrize(
    "refusal",
    [
        fails(401),
        fails(403),
        fails(402),
        fails(429, "You exceeded your current quota.", retryable=False),
        RateLimited("The account has no credit left.", status=400, retryable=False),
        fails(400, "Your credit balance is too low to access the API."),
        fails(400, "API key not valid. Please pass a valid API key."),
    ],
)
async def test_key_and_credit_rule_a_member_out_and_put_it_last(refusal: ModelError) -> None:
    time = Time()
    one = Member("a", [refusal], [refusal], good("a"))
    two = Member("b", good("1"), [fails(500)], [fails(500)], [fails(500)], good("4"))
    pool = pooled(one, two, time=time)
    assert (await ask(pool))[0][1:] == good("1")
    time.now += 1e6  # a key does not heal by waiting
    _, error = await ask(pool)
    assert isinstance(error, ModelError) and error.status == 500
    assert (len(one.requests), len(two.requests)) == (2, 3)
    assert (await ask(pool))[0][1:] == good("a")
    await ask(pool)
    assert (len(one.requests), len(two.requests)) == (4, 4)  # its success put it first again


@pytest.mark.parametrize(
    "failure", [ModelError("no.", status=501), Unreachable("no.", retryable=False)]
)
async def test_what_will_not_pass_is_not_tried_again(failure: ModelError) -> None:
    one, two = Member("a", [failure]), Member("b", [fails(503)], good())
    _, error = await ask(pooled(one, two))
    assert (error, len(one.requests), len(two.requests)) == (None, 1, 2)


async def test_a_bug_is_no_failure_of_a_provider() -> None:
    one, two = Member("a", [KeyError("bug")]), Member("b", good())
    with pytest.raises(KeyError):
        await ask(pooled(one, two))
    assert two.requests == []


# --- all gone ------------------------------------------------------------------------------------


async def test_when_all_are_gone_the_error_names_each_and_why() -> None:
    key = "sk-" + "a1b2c3d4" * 3
    one = Member("anthropic", [fails(401, f"anthropic answered 401 (unauthorized): bad {key}")])
    two = Member("openai", [fails(503, "openai answered 503 (service unavailable).")])
    three = Member("groq", [fails(404, "no such model\nat all")])
    _, error = await ask(pooled(one, two, three))
    assert type(error) is ModelError
    assert error.message == (
        "None of 3 models could answer. "
        "anthropic (anthropic-1) answered 401 (unauthorized): bad [key]. "
        "groq (groq-1): no such model at all. "
        "openai (openai-1) answered 503 (service unavailable)."
    )
    assert str(error) == error.message
    assert (error.status, error.retryable, error.provider) == (503, True, "p")
    assert isinstance(error.__cause__, ModelError) and error.__cause__.message.startswith("openai")


@pytest.mark.parametrize(
    ("first", "second", "telling"),
    [
        (fails(503), fails(401), 503),
        (fails(401), Unreachable("x", retryable=False), 401),
        (Unreachable("x"), fails(401), None),
        (fails(404), fails(401), 401),
        (fails(401), fails(404), 404),
    ],
)
async def test_the_error_is_of_the_most_telling_kind(
    first: ModelError, second: ModelError, telling: int | None
) -> None:
    _, error = await ask(pooled(Member("a", [first]), Member("b", [second])))
    wanted = first if first.status == telling else second
    assert error is not None
    assert (type(error), error.status, error.retryable) == (
        type(wanted),
        wanted.status,
        wanted.retryable,
    )
    assert wanted.message in ("it failed.", "x")  # the member's own error is left as it was


# --- who can take what ---------------------------------------------------------------------------

IMAGE = ImageBlock(mime_type="image/png", data="aGk=")
AUDIO = AudioBlock(mime_type="audio/wav", data="aGk=")
TOOL = ToolDefinition(name="t", description="", parameters={"type": "object"})


def showing(*blocks: ImageBlock | AudioBlock | TextBlock) -> ModelRequest:
    return ModelRequest(items=(Message(role="user", content=blocks), Message.of("user", "hi")))


async def test_media_go_to_those_that_can_take_them() -> None:
    one = Member("a", good())
    two = Member("b", [fails(503, "It is busy.")], can=Capabilities(images=True))
    _, error = await ask(pooled(one, two), showing(IMAGE))
    assert (len(one.requests), len(two.requests)) == (0, 2)
    assert error is not None and error.message == (
        "None of 2 models could answer. a (a-1): The model a-1 cannot take images. "
        "b (b-1): It is busy."
    )


async def test_media_nobody_can_take_are_refused_before_any_request() -> None:
    one = Member("a", good(), can=Capabilities(audio=True))
    two = Member("b", good(), can=Capabilities(images=True))
    _, error = await ask(pooled(one, two), showing(IMAGE, AUDIO))
    assert type(error) is BadRequest and error.message == (
        "None of 2 models could answer. a (a-1): The model a-1 cannot take images. "
        "b (b-1): The model b-1 cannot take audio."
    )
    assert one.requests == two.requests == []


async def test_tools_go_to_those_that_can_call_them() -> None:
    one = Member("a", good("a"), can=Capabilities(tool_calling="none"))
    two = Member("b", good("b"), can=Capabilities(tool_calling="text"))
    pool = pooled(one, two)
    assert (await ask(pool, ModelRequest(tools=(TOOL,))))[0] == good("b")
    assert (await ask(pool, ModelRequest()))[0] == good("a")
    assert (await ask(pooled(one), ModelRequest(tools=(TOOL,))))[0] == good("a")


async def test_media_count_for_more_than_tools() -> None:
    one = Member("a", good("a"), can=Capabilities(tool_calling="none", images=True))
    two = Member("b", good("b"))
    request = showing(IMAGE).model_copy(update={"tools": (TOOL,)})
    assert (await ask(pooled(one, two), request))[0] == good("a")


def test_the_pool_says_what_can_be_relied_on() -> None:
    one = Member(
        "anthropic",
        can=Capabilities(
            context_window=200_000, images=True, thinking=True, max_temperature=1.0,
            refuses=frozenset({"seed", "top_p"}),
        ),
    )  # fmt: skip
    two = Member(
        "openai",
        can=Capabilities(
            tool_calling="text", context_window=100_000, max_output_tokens=9, audio=True,
            refuses=frozenset({"seed"}),
        ),
    )  # fmt: skip
    three = Member("local", can=Capabilities(tool_calling="none"))
    assert pooled(one, two, three).info == ModelInfo(
        provider="pool",
        name="anthropic, openai, local",
        capabilities=Capabilities(
            context_window=100_000, max_output_tokens=9, images=True, audio=True, thinking=True
        ),
    )
    assert pooled(one).info.capabilities.refuses == {"seed", "top_p"}
    assert pooled(three).info.capabilities.tool_calling == "none"
    four = Member("x", provider="local", can=Capabilities(tool_calling="constrained"))
    assert pooled(one, four).info.capabilities.tool_calling == "constrained"
    assert pooled(three, four).info.name == "local (local-1), local (x-1)"
