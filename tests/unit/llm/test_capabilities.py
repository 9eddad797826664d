"""The table of models, and what providers said since."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentls.core.requests import Capabilities, Price
from agentls.llm.capabilities import Facts, Known, facts, remember, table


def test_every_row_is_valid_and_reachable() -> None:
    seen: set[tuple[str, str]] = set()
    for row in table():
        assert (row.provider, row.match) not in seen
        seen.add((row.provider, row.match))
        assert set(row.told) <= set(Capabilities.model_fields)
        name = (
            row.match.replace("[12]", "1")
            .replace("[678]", "6")
            .replace("[05]", "0")
            .replace("*", "")
        )
        found = facts(row.provider, name or "zzz-unheard-of")
        assert found == Facts(Capabilities.model_validate(row.told), row.wire), row


@pytest.mark.parametrize(
    ("provider", "model", "window", "refuses", "wire"),
    [
        ("anthropic", "claude-sonnet-5-5", 1_000_000, True, {"thinking": "always"}),
        ("anthropic", "claude-opus-4-5-20251101", 200_000, False, {}),
        ("anthropic", "claude-of-tomorrow", None, False, {}),
        ("openai", "gpt-5-mini-2025-08-07", 272_000, True, {"least_effort": "minimal"}),
        ("openai", "gpt-6-sol", 922_000, True, {}),
        ("openai", "some/local-model", None, False, {}),
        ("gemini", "gemini-2.5-pro", 1_048_576, False, {}),
        ("gemini", "gemini-3.8-flash", 1_048_576, True, {"thinking": "level"}),
        ("deepseek", "deepseek-v4-flash", 1_000_000, False, {"replay_reasoning": True}),
        ("nobody", "m", None, False, {}),
    ],
)
def test_the_first_match_counts(
    provider: str, model: str, window: int | None, refuses: bool, wire: dict[str, object]
) -> None:
    found = facts(provider, model)
    assert found.capabilities.context_window == window
    assert ("temperature" in found.capabilities.refuses) is refuses
    assert found.wire == wire


def test_prices() -> None:
    assert facts("anthropic", "claude-haiku-4-5").capabilities.price == Price(
        input=1, output=5, cache_read=0.1, cache_write=1.25
    )


def test_what_a_provider_said_counts_more(tmp_path: Path) -> None:
    learned = tmp_path / "cache" / "models.json"
    remember(learned, "groq", {"new": Known(context_window=9_000, images=True)})
    remember(learned, "anthropic", {"claude-haiku-4-5": Known(max_output_tokens=7)})
    assert facts("groq", "new", learned=learned).capabilities == Capabilities(
        context_window=9_000, images=True
    )
    haiku = facts("anthropic", "claude-haiku-4-5", learned=learned).capabilities
    assert (haiku.max_output_tokens, haiku.context_window) == (7, 200_000)
    remember(learned, "groq", {})
    assert facts("groq", "new", learned=learned) == Facts()
    assert list(learned.parent.iterdir()) == [learned]


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"groq": 3}', '{"groq": {"m": {"context_window": "x"}}}', "\x00"]
)
def test_a_broken_file_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    learned = tmp_path / "models.json"
    learned.write_text(text)
    assert facts("groq", "m", learned=learned) == Facts()
    remember(learned, "groq", {"m": Known(context_window=5)})
    assert json.loads(learned.read_text()) == {"groq": {"m": {"context_window": 5}}}
