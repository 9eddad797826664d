"""In-memory ports for the tools, with the promises of the real ones."""

from __future__ import annotations

import fnmatch
import hashlib
import posixpath
import re
from dataclasses import dataclass, field

from agentls.core.errors import InvalidArguments, PathRefused, StaleFile, ToolError
from agentls.core.ports import CommandResult, FileText, Found, GrepMatch, PathFacts


def version(text: str) -> str:
    """Names exactly this text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass
class MemoryFiles:
    """A workspace as a dict; `links` maps a link to the path it leads to."""

    texts: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    protected: set[str] = field(default_factory=set)
    writes: list[tuple[str, str, str | None]] = field(default_factory=list)

    async def facts(self, path: str) -> PathFacts:
        real = self._resolve(path)
        return PathFacts(
            path=real,
            exists=real in self.texts or real in self._folders(),
            secret=real in self.secrets,
            protected=real in self.protected,
            target=real if path in self.links else None,
        )

    async def read(self, path: str) -> FileText:
        real = self._resolve(path)
        if real in self._folders():
            raise PathRefused(f"{real} is a folder.")
        if real not in self.texts:
            raise ToolError(f"there is no file {real}.")
        return FileText(real, self.texts[real], version(self.texts[real]))

    async def write(
        self, path: str, text: str, *, base: str | None, place: str | None = None
    ) -> FileText:
        real = self._resolve(path)
        if place is not None and real != place:
            raise StaleFile(f"{path} leads elsewhere by now.", hint="Try again.")
        present = version(self.texts[real]) if real in self.texts else None
        if present != base:
            raise StaleFile(f"{real} has changed.", hint="Read it again.")
        self.writes.append((real, text, base))
        self.texts[real] = text
        return FileText(real, text, version(text))

    def _resolve(self, path: str) -> str:
        real = posixpath.normpath(self.links.get(path, path))
        if real.startswith(("/", "..")):
            raise PathRefused(f"{path} is outside the workspace.")
        return real

    def _folders(self) -> set[str]:
        return {name.rpartition("/")[0] for name in self.texts} | {"."}


@dataclass
class MemorySearch:
    """Searches a `MemoryFiles`; remembers what it was asked."""

    files: MemoryFiles
    asked: list[dict[str, object]] = field(default_factory=list)

    async def glob(self, pattern: str, *, path: str = ".", limit: int = 200) -> Found:
        self.asked.append({"pattern": pattern, "path": path, "limit": limit})
        wanted = pattern.removeprefix("**/")
        visible = sorted(self.files.texts.keys() - self.files.secrets)
        hits = [p for p in visible if fnmatch.fnmatch(p.rpartition("/")[2], wanted)]
        skipped = sum(fnmatch.fnmatch(p.rpartition("/")[2], wanted) for p in self.files.secrets)
        return Found(tuple(hits[:limit]), truncated=len(hits) > limit, skipped_secrets=skipped)

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
        options: dict[str, object] = {
            "literal": literal,
            "ignore_case": ignore_case,
            "context_lines": context_lines,
        }
        self.asked.append(
            {"pattern": pattern, "path": path, "glob": glob, "limit": limit} | options
        )
        try:
            expression = re.compile(re.escape(pattern) if literal else pattern)
        except re.error as error:
            raise InvalidArguments(f"the expression does not parse: {error}.") from None
        matches: list[GrepMatch] = []
        for name in sorted(self.files.texts.keys() - self.files.secrets):
            lines = self.files.texts[name].split("\n")
            hits = {n for n, line in enumerate(lines, 1) if expression.search(line)}
            near = {m for n in hits for m in range(n - context_lines, n + context_lines + 1)}
            matches += [
                GrepMatch(name, n, line, n in hits) for n, line in enumerate(lines, 1) if n in near
            ]
        return Found(matches=tuple(matches[:limit]), truncated=len(matches) > limit)


@dataclass
class FixedShell:
    """Answers every command alike; remembers what it ran."""

    result: CommandResult = field(default_factory=lambda: CommandResult(0, ""))
    ran: list[tuple[str, float]] = field(default_factory=list)

    async def run(self, command: str, *, timeout_s: float) -> CommandResult:
        self.ran.append((command, timeout_s))
        return self.result
