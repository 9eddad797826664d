"""Names and text of the workspace's files, found by ripgrep.

Ignore files are honoured, hidden files are included, `.git` is not, links are not followed, secrets
are left out and counted. Checks what is asked and keeps the time; `rg_search` does the searching.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from agentls.core.errors import InvalidArguments, ToolError
from agentls.core.ports import Found
from agentls.workspace.failures import quoted
from agentls.workspace.globs import BadGlob, compile_glob, last_name
from agentls.workspace.rg_process import Searcher, find_ripgrep, supervised
from agentls.workspace.rg_search import Query, Search, Wanted
from agentls.workspace.roots import Roots
from agentls.workspace.scopes import Scope, scopes

_MAX_PATTERN_CHARS = 10_000
_MAX_CONTEXT_LINES = 50
T = TypeVar("T")


class Ripgrep:
    """`core.ports.TextSearch` by ripgrep.

    With several roots, `.` searches all of them; paths of other roots than the first are
    absolute, as in `Roots.name`. Globs may start at the searched folder or at the root. Searches
    that take longer than `time_limit_s` stop with what they have. Cancelling kills ripgrep first.
    """

    def __init__(self, roots: Roots, *, time_limit_s: float = 20.0) -> None:
        """The binary is looked for at the first search."""
        self._roots = roots
        self._time_limit_s = time_limit_s

    async def glob(self, pattern: str, *, path: str = ".", limit: int = 200) -> Found:
        """Files below `path` that match, sorted by name; see `core.ports.TextSearch`.

        Raises:
            InvalidArguments: the pattern does not parse.
            PathRefused: `path` is outside the workspace.
            ToolError: `path` does not exist, or nothing was found in time.
        """
        wanted = _wanted(pattern)
        found, stopped = await self._run(path, lambda search: search.glob(wanted, limit))
        return self._checked(found, stopped=stopped)

    async def grep(
        self,
        pattern: str,
        *,
        path: str = ".",
        glob: str | None = None,
        literal: bool = False,
        ignore_case: bool = False,
        context_lines: int = 0,
        limit: int = 200,
    ) -> Found:
        """Lines that match, sorted by path and line; see `core.ports.TextSearch`.

        Files over 10 MB are not searched, unless `path` names one. Long lines are cut around their
        first match.

        Raises:
            InvalidArguments: the expression or the glob does not parse.
            PathRefused: `path` is outside the workspace.
            ToolError: `path` does not exist, or nothing was found in time.
        """
        _require_pattern(pattern)
        context_lines = min(max(context_lines, 0), _MAX_CONTEXT_LINES)
        query = Query(
            options=(
                *(["--fixed-strings"] if literal else []),
                *(["--ignore-case"] if ignore_case else []),
                *_type_filter(glob),
                f"--context={context_lines}",
                f"--regexp={pattern}",
            ),
            wanted=_wanted(glob) if glob else _every,
            context_lines=context_lines,
            limit=limit,
        )
        found, stopped = await self._run(path, lambda search: search.grep(query))
        return self._checked(found, stopped=stopped)

    async def tally(self, words: Sequence[str]) -> dict[str, Counter[str]]:
        """How often each text file of the workspace holds each word, whatever the case.

        Of words that overlap, the one listed first counts. Keys are names and words in lower case.
        Large files, secrets and ignored files are left out.
        """
        if not words:
            return {}
        for word in words:
            _require_pattern(word)
        tally, _ = await self._run(".", lambda search: search.tally(words))
        return tally

    async def _run(self, path: str, work: Callable[[Search], T]) -> tuple[T, bool]:
        where = await asyncio.to_thread(scopes, self._roots, path)
        searcher = Searcher(find_ripgrep())
        search = Search(searcher, where)
        result = await supervised(searcher, lambda: work(search), self._time_limit_s)
        return result, searcher.stopped

    def _checked(self, found: Found, *, stopped: bool) -> Found:
        if not stopped:
            return found
        if not found.paths and not found.matches:
            raise ToolError(
                f"The search took longer than {self._time_limit_s:g} s.",
                hint="Search a folder, or add a glob.",
            )
        return replace(found, truncated=True)


def _every(_scope: Scope, _path: str) -> bool:
    return True


def _wanted(pattern: str) -> Wanted:
    """Whether a path below the scope or below the root matches; after `!`, whether neither does."""
    try:
        matches = compile_glob(pattern.removeprefix("!"))
    except BadGlob as error:
        raise InvalidArguments(f"The glob {quoted(pattern)} cannot be used: {error}.") from None
    negated = pattern.startswith("!")
    return lambda scope, path: (matches(path) or matches(scope.relative(path))) != negated


def _type_filter(glob: str | None) -> list[str]:
    """Spares ripgrep files that `_wanted` would drop. Unlike `--glob` it obeys ignore files."""
    name = None if glob is None or glob.startswith("!") else last_name(glob)
    return [] if name is None else [f"--type-add=wanted:{name}", "--type=wanted"]


def _require_pattern(pattern: str) -> None:
    if not pattern:
        raise InvalidArguments("The pattern is empty.")
    if len(pattern) > _MAX_PATTERN_CHARS:
        raise InvalidArguments(f"The pattern is longer than {_MAX_PATTERN_CHARS} characters.")
    try:
        usable = "\0" not in pattern and bool(pattern.encode())
    except UnicodeEncodeError:
        usable = False
    if not usable:
        raise InvalidArguments("The pattern holds a NUL or is not valid Unicode.")
