"""Errors inside replies of Ollama's chat: a sentence each, told apart by its words."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue

from agentls.core.errors import BadRequest, ModelError, StreamBroken, Unauthorized
from support.ollama_streams import RECORDED, delta, done, fault, heard, ndjson
from support.reply_events import cut_text


@pytest.mark.parametrize(
    ("said", "kind", "status", "retryable", "hint"),
    [
        (
            "model 'q:7b' not found",
            BadRequest,
            404,
            False,
            "If this is Ollama, `ollama pull q:7b` gets it.",
        ),
        (
            'model "q" not found, try pulling it first',
            BadRequest,
            404,
            False,
            "If this is Ollama, `ollama pull q` gets it.",
        ),
        (
            "registry.example/library/m:latest does not support tools",
            BadRequest,
            400,
            False,
            "Choose a model that can call tools.",
        ),
        ('"m" does not support thinking', BadRequest, 400, False, ""),
        (
            "model requires more system memory (11.2 GiB) than is available (7.1 GiB)",
            ModelError,
            500,
            False,
            "Choose a smaller model, or a smaller context with llm.ollama.context_tokens.",
        ),
        (
            "an error was encountered while running the model: CUDA error: out of memory",
            ModelError,
            500,
            False,
            "Choose a smaller model, or a smaller context with llm.ollama.context_tokens.",
        ),
        (
            "the prompt is longer than the context length currently available to the model",
            BadRequest,
            400,
            False,
            "It is longer than the model's context: start a new session, or send less.",
        ),
        (
            json.dumps(
                {
                    "error": {
                        "code": 400,
                        "message": "request (351 tokens) exceeds the available context size (256)",
                        "type": "exceed_context_size_error",
                    }
                }
            ),
            BadRequest,
            400,
            False,
            "It is longer than the model's context: start a new session, or send less.",
        ),
        (
            "server busy, please try again.  maximum pending requests exceeded",
            ModelError,
            503,
            True,
            "",
        ),
        ("unauthorized", Unauthorized, 401, False, ""),
        ("unexpected EOF", StreamBroken, None, True, ""),
    ],
)
def test_errors_are_classified(
    said: str, kind: type[ModelError], status: int | None, retryable: bool, hint: str
) -> None:
    error = fault(ndjson(delta("a"), {"error": said}))
    assert (type(error), error.status, error.retryable, error.hint, error.provider) == (
        kind,
        status,
        retryable,
        hint,
        "fake",
    )
    shown = said
    if said.startswith("{"):  # the error of the server behind Ollama
        shown = "request (351 tokens) exceeds the available context size (256)"
    assert error.message == f"fake reported an error: {' '.join(shown.split())}."


def test_an_error_ends_the_blocks() -> None:
    broke = "fake reported an error: an error was encountered while running the model: "
    assert heard(RECORDED["error inside"]) == (
        cut_text("a"),
        ("stream_broken", f"{broke}unexpected EOF."),
    )
    assert heard(RECORDED["error in the last line"]) == (
        cut_text("a"),
        ("stream_broken", "fake reported an error: boom."),
    )
    assert heard(RECORDED["error at once"])[0] == []
    assert heard(ndjson(delta("a"), done("error"))) == (
        cut_text("a"),
        ("stream_broken", "fake gave up on the reply (error)."),
    )


@pytest.mark.parametrize("error", [{"message": "boom", "code": 503}, [1], 5])
def test_errors_of_other_shapes(error: JsonValue) -> None:
    assert isinstance(fault(ndjson({"error": error})), ModelError)
