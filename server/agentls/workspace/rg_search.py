"""One search by ripgrep, start to end. Blocking; for worker threads.

Knows the arguments that every search needs and which of the results count. Knows nothing of the
event loop, or of where patterns come from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from agentls.core.errors import InvalidArguments
from agentls.core.ports import Found, GrepMatch
from agentls.workspace.disk import MAX_FILE_BYTES
from agentls.workspace.failures import tool_error
from agentls.workspace.rg_json import decode_path, read_matches
from agentls.workspace.rg_process import Output, Searcher
from agentls.workspace.scopes import Scope
from agentls.workspace.sensitive import is_secret, secret_globs
from agentls.workspace.writes import TEMPORARY_PREFIX

_MAX_KEPT = 20_000
"""Paths held while listing; more are cut down to the first ones."""

_MAX_TALLIED_BYTES = 1_000_000
_MAX_TALLIED_LINES = 200
_TALLY_OUTPUT_BYTES = 32_000_000

_COMMON = (
    "--hidden",
    "--no-require-git",
    "--no-messages",
    "--iglob=!.git",
    f"--glob=!{TEMPORARY_PREFIX}*",
)
_GREP = ("--json", "--crlf", f"--max-filesize={MAX_FILE_BYTES}")
_WITHOUT_SECRETS = tuple(f"--iglob=!{glob}" for glob in secret_globs())
"""Keeps ripgrep from opening most secrets; `is_secret` decides about all."""

Wanted = Callable[[Scope, str], bool]
"""Whether a file counts, by its path below the scope's folder."""


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for. `options` are arguments of ripgrep, the pattern among them."""

    options: tuple[str, ...]
    wanted: Wanted
    context_lines: int
    limit: int


class Search:
    """A search in one or more scopes. Files of secrets are left out and counted."""

    def __init__(self, searcher: Searcher, where: list[Scope]) -> None:
        """`searcher` may be stopped meanwhile: the results are what there is then."""
        self._searcher = searcher
        self._scopes = where

    def glob(self, wanted: Wanted, limit: int) -> Found:
        """The first `limit` files, by name."""
        names: list[str] = []
        secrets = 0
        truncated = False
        for scope in self._scopes:
            for path in self._files(scope):
                if not wanted(scope, path):
                    continue
                if is_secret(scope.relative(path)):
                    secrets += 1
                    continue
                names.append(scope.name(path))
                if len(names) > max(_MAX_KEPT, 2 * limit):
                    names = sorted(names)[:limit]
                    truncated = True
        names.sort()
        return Found(
            paths=tuple(names[:limit]),
            truncated=truncated or len(names) > limit,
            skipped_secrets=secrets,
        )

    def grep(self, query: Query) -> Found:
        """The first matching lines, by path and line.

        Raises:
            InvalidArguments: ripgrep cannot use the pattern.
            ToolError: a folder or file cannot be opened.
        """
        matches: list[GrepMatch] = []
        secrets = 0
        truncated = False
        for scope in self._scopes:
            limit = query.limit - sum(match.is_match for match in matches)
            found = self._grep(scope, replace(query, limit=limit))
            matches.extend(found.matches)
            secrets += found.skipped_secrets
            truncated = truncated or found.truncated
        matches.sort(key=lambda match: (match.path, match.line_no))
        return Found(matches=tuple(matches), truncated=truncated, skipped_secrets=secrets)

    def tally(self, words: Sequence[str]) -> dict[str, Counter[str]]:
        """How often each file holds each word; keys are names, and words in lower case."""
        arguments = [
            *_COMMON,
            "--only-matching",
            "--ignore-case",
            "--fixed-strings",
            "--heading",
            "--null",
            "--no-line-number",
            f"--max-filesize={_MAX_TALLIED_BYTES}",
            f"--max-count={_MAX_TALLIED_LINES}",
            *(f"--regexp={word}" for word in words),
            *_WITHOUT_SECRETS,
        ]
        tally: dict[str, Counter[str]] = {}
        for scope in self._scopes:
            full = [*arguments, *scope.ignore_arguments(), "--", "."]
            with scope.opened() as folder, self._searcher.run(folder, full) as output:
                written = output.whole(_TALLY_OUTPUT_BYTES)
            for path, found in _headings(written):
                if not scope.is_covered(path) and not is_secret(scope.relative(path)):
                    tally[scope.name(path)] = found
        return tally

    def _files(self, scope: Scope) -> Iterator[str]:
        """Paths below the scope's folder, in no order."""
        if scope.file is not None:
            yield scope.file
            return
        arguments = [*_COMMON, "--files", "--null", *scope.ignore_arguments(), "--", "."]
        with scope.opened() as folder, self._searcher.run(folder, arguments) as output:
            for raw in output.records(b"\0"):
                path = decode_path(raw)
                if not scope.is_covered(path):
                    yield path

    def _grep(self, scope: Scope, query: Query) -> Found:
        """Search on all cores in no order; if there is too much, in order and on one.

        Secrets are counted by listing, so that the count tells nothing of what they hold.
        """
        arguments = [*_COMMON, *_GREP, f"--max-count={query.limit + 1}", *query.options]
        if scope.file is not None:
            return self._grep_file(scope, scope.file, query, arguments)
        rest = [*_WITHOUT_SECRETS, *scope.ignore_arguments(), "--", "."]
        with scope.opened() as folder:
            with self._searcher.run(folder, [*arguments, *rest]) as output:
                secrets = sum(
                    is_secret(scope.relative(path)) and query.wanted(scope, path)
                    for path in self._files(scope)
                )
                found = self._read(scope, query, output)
            if found.truncated and not self._searcher.stopped:
                ordered = [*arguments, "--sort=path", *rest]
                with self._searcher.run(folder, ordered) as output:
                    found = self._read(scope, query, output)
        return replace(found, skipped_secrets=secrets)

    def _grep_file(self, scope: Scope, file: str, query: Query, arguments: Sequence[str]) -> Found:
        """Matches in one file, opened here and handed over as standard input."""
        if not query.wanted(scope, file):
            return Found()
        if is_secret(scope.relative(file)):
            return Found(skipped_secrets=1)
        try:
            with (
                scope.opened() as folder,
                folder.opened(file) as (descriptor, _),
                self._searcher.run(folder, [*arguments, "--", "-"], stdin=descriptor) as output,
            ):
                return self._read(scope, query, output)
        except OSError as error:
            raise tool_error(error, scope.name(file), "read") from None

    def _read(self, scope: Scope, query: Query, output: Output) -> Found:
        def wanted(path: str) -> bool:
            return (
                not is_secret(scope.relative(path))
                and not scope.is_covered(path)
                and query.wanted(scope, path)
            )

        matches, truncated = read_matches(
            output.records(b"\n"),
            wanted=wanted,
            limit=query.limit,
            context_lines=query.context_lines,
            name=scope.file,
        )
        if not matches and not truncated and (reason := output.failure()):
            raise InvalidArguments(f"The pattern cannot be used: {reason}.")
        named = (replace(match, path=scope.name(match.path)) for match in matches)
        return Found(matches=tuple(named), truncated=truncated)


def _headings(written: bytes) -> Iterator[tuple[str, Counter[str]]]:
    r"""Files and what was found in them, from `path \0 word \n word \n \n path \0 …`."""
    path, *blocks = written.split(b"\0")
    for block in blocks:
        words, _, following = block.partition(b"\n\n")
        found = words.decode("utf-8", "replace").lower().split("\n")
        yield decode_path(path), Counter(filter(None, found))
        path = following
