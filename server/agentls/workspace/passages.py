"""The passages of the workspace that best fit a question, by the words they share.

Three steps: ripgrep counts the question's words in every file, the files that look best by those
counts are read, and stretches of some forty lines in them are ranked (`ranking`). Needs no index
and no model.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Mapping, Sequence

from agentls.core.errors import AgentlsError
from agentls.core.ports import Files, FileText, Passage
from agentls.workspace.question import Term, terms
from agentls.workspace.ranking import Clue, best_passages, path_value
from agentls.workspace.ripgrep import Ripgrep
from agentls.workspace.roots import Roots

_MAX_READ = 48
_SATURATION = 2.0


class KeywordPassages:
    """`core.ports.Passages` by words. Files are read through `files`, so open buffers count."""

    def __init__(self, roots: Roots, search: Ripgrep, files: Files) -> None:
        """`roots` tells which files a question names."""
        self._roots = roots
        self._search = search
        self._files = files

    async def find(self, question: str, *, limit: int = 5) -> Sequence[Passage]:
        """Best first; see `core.ports.Passages`. Ignored files and secrets are never looked at.

        Raises:
            ToolError: ripgrep is missing.
        """
        wanted = terms(question)
        if not wanted or limit < 1:
            return ()
        tally = await self._search.tally([term.text for term in wanted])
        clues = _clues(wanted, tally)
        named = await asyncio.to_thread(self._named, wanted)
        chosen = _candidates(clues, tally, named)
        texts = await asyncio.gather(*(self._read(path) for path in chosen))
        files = [text for text in texts if text is not None]
        return await asyncio.to_thread(best_passages, question, clues, files, named, limit)

    async def _read(self, path: str) -> FileText | None:
        try:
            return await self._files.read(path)
        except AgentlsError:  # gone meanwhile, or not text
            return None

    def _named(self, wanted: Sequence[Term]) -> frozenset[str]:
        """Files that the question names by their path."""
        found = set()
        for term in wanted:
            if "." in term.text or "/" in term.text:
                try:
                    place = self._roots.resolve(term.text)
                except AgentlsError:
                    continue
                if place.exists and place.real.is_file():
                    found.add(place.name)
        return frozenset(found)


def _clues(wanted: Sequence[Term], tally: Mapping[str, Counter[str]]) -> tuple[Clue, ...]:
    """The words that were found, each with its worth: the fewer files hold it, the more."""
    clues = []
    for term in wanted:
        files = sum(any(term.text in word for word in counts) for counts in tally.values())
        if files:
            rarity = math.log(1 + (len(tally) - files + 0.5) / (files + 0.5))
            clues.append(Clue(term.text, term.weight * (0.1 + rarity)))
    return tuple(clues)


def _candidates(
    clues: Sequence[Clue], tally: Mapping[str, Counter[str]], named: frozenset[str]
) -> list[str]:
    def value(path: str) -> float:
        total = path_value(path, clues)
        counts = tally[path]
        for clue in clues:
            number = sum(count for word, count in counts.items() if clue.text in word)
            total += clue.worth * number / (number + _SATURATION)
        return total

    ranked = sorted(tally, key=lambda path: (-value(path), path))
    return [*sorted(named), *(path for path in ranked if path not in named)][:_MAX_READ]
