"""The catalogue's data fits together."""

from __future__ import annotations

import re

import pytest

from agentls.llm.embedded.catalogue import CATALOGUE, CatalogueEntry


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.name)
def test_an_entry_names_one_file_in_every_source(entry: CatalogueEntry) -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", entry.sha256)
    assert re.fullmatch(r"[0-9a-f]{40}", entry.hub.revision)
    assert entry.file.endswith(".gguf")
    assert "/" not in entry.file
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", wheel) for wheel in entry.wheels.requirements)
    count, part = len(entry.wheels.requirements), entry.wheels.part_bytes
    assert (count - 1) * part < entry.size_bytes <= count * part


def test_names_ranks_and_files_are_unique_and_the_best_comes_first() -> None:
    entries = list(CATALOGUE.values())
    assert [entry.name for entry in entries] == list(CATALOGUE)
    assert len({entry.file for entry in entries}) == len(entries)
    ranks = [entry.rank for entry in entries]
    assert ranks == sorted(set(ranks))
    assert {name: entry.tool_calling for name, entry in CATALOGUE.items()} == {
        "qwen1.5b": "constrained",
        "qwen0.5b": "constrained",
        "smollm2": "none",
    }
