"""The passages of the workspace that best fit a question, by the words they share.

Three steps: ripgrep counts the question's words in every file, the files that look best by those
counts are read, and stretches of some forty lines in them are ranked (`ranking`). Needs no index
and no model.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from agentls.core.errors import AgentlsError
from agentls.core.ports import Files, FileText, Passage
from agentls.workspace.question import Term, terms
from agentls.workspace.ranking import Clue, Ranking
from agentls.workspace.ripgrep import Ripgrep
from agentls.workspace.roots import Roots
from agentls.workspace.sensitive import is_secret

_MAX_READ = 32
_SATURATION = 2.0
_QUOTED_WORDS = 6
_TRANSCRIPT = re.compile(r"^```(?:console|shell-session)\n.*?^```$", re.MULTILINE | re.DOTALL)
"""What was asked and answered shares every word with a question, and explains nothing."""


class KeywordPassages:
    """`core.ports.Passages` by words. Files are read through `files`, so open buffers count."""

    def __init__(
        self,
        roots: Roots,
        search: Ripgrep,
        files: Files,
        *,
        readable: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """`roots` tells which files a question names; `readable` which may be shown unasked."""
        self._roots = roots
        self._search = search
        self._files = files
        self._readable = readable

    async def find(self, question: str, *, limit: int = 5) -> Sequence[Passage]:
        """Best first; see `core.ports.Passages`. Ignored files and secrets are never looked at.

        Raises:
            ToolError: ripgrep is missing.
        """
        wanted = terms(question)
        if not wanted or limit < 1:
            return ()
        tally = await self._search.tally([term.text for term in wanted if not term.parts])
        named = await asyncio.to_thread(self._named, wanted)
        found = _Found(wanted, tally)
        ranking = Ranking(found.clues, named, about_tests="test" in question.lower())
        texts = await asyncio.gather(*map(self._read, found.candidates(ranking, named)))
        files = [text for text in texts if text is not None and not _quotes(text.text, question)]
        return await asyncio.to_thread(ranking.best, files, limit)

    async def _read(self, path: str) -> FileText | None:
        if not self._readable(path):
            return None
        try:
            file = await self._files.read(path)
        except AgentlsError:  # gone meanwhile, or not text
            return None
        if not path.endswith(".md"):
            return file
        return replace(file, text=_TRANSCRIPT.sub(_blank, file.text))

    def _named(self, wanted: Sequence[Term]) -> frozenset[str]:
        """Files that the question names by their path, but no secrets."""
        found = set()
        for term in wanted:
            if "." in term.text or "/" in term.text:
                try:
                    place = self._roots.resolve(term.word)
                except AgentlsError:
                    continue
                if is_secret(place.relative) or is_secret(place.asked):
                    continue
                if place.exists and place.real.is_file():
                    found.add(place.name)
        return frozenset(found)


def _blank(transcript: re.Match[str]) -> str:
    """Nothing in as many lines, so that those behind keep their numbers."""
    return "\n" * transcript.group().count("\n")


def _quotes(text: str, question: str) -> bool:
    """Whether a text holds the whole question: an example or a transcript, not the answer."""
    asked = question.strip()
    return len(asked.split()) >= _QUOTED_WORDS and asked in text


class _Found:
    """What ripgrep counted, by term instead of by word: `lines` also holds `line`.

    Joined words are not among it; they are looked for in the files that are read.
    """

    def __init__(self, wanted: Sequence[Term], tally: Mapping[str, Counter[str]]) -> None:
        words = {word for counts in tally.values() for word in counts}
        holds = {
            word: [index for index, term in enumerate(wanted) if term.text in word]
            for word in words
        }
        self._counts: dict[str, dict[int, int]] = {}
        files = [0] * len(wanted)
        for path, counts in tally.items():
            own: dict[int, int] = {}
            for word, number in counts.items():
                for index in holds[word]:
                    own[index] = own.get(index, 0) + number
            for index in own:
                files[index] += 1
            self._counts[path] = own
        total = len(tally)
        rarity = {
            term.text: 0.1 + _rarity(total, files[index]) for index, term in enumerate(wanted)
        }
        self.clues = tuple(Clue(term.text, term.word, _worth(term, rarity)) for term in wanted)

    def candidates(self, ranking: Ranking, named: frozenset[str]) -> list[str]:
        """The files worth reading, those that are named first."""

        def value(path: str) -> float:
            total = ranking.path_value(path)
            for index, number in self._counts[path].items():
                total += self.clues[index].worth * number / (number + _SATURATION)
            return total * ranking.factor(path)

        ranked = sorted(self._counts, key=lambda path: (-value(path), path))
        return [*sorted(named), *(path for path in ranked if path not in named)][:_MAX_READ]


def _worth(term: Term, rarity: Mapping[str, float]) -> float:
    """Joined words are as rare as their parts: that they stand together is rare by itself."""
    own = [rarity.get(part, 0.0) for part in term.parts] or [rarity[term.text]]
    return term.weight * sum(own) / len(own)


def _rarity(total: int, files: int) -> float:
    """The fewer of the files hold a word, the more it tells."""
    return math.log(1 + (total - files + 0.5) / (files + 0.5))
