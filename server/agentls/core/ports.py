"""Protocols at the seams: what the agent and the tools need from the rest.

The agent and the tools see only these; `app.py` hands them the real things.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from pydantic import JsonValue

from agentls.core.events import Event
from agentls.core.messages import FileDiff, Item, ToolCall
from agentls.core.requests import ModelInfo, ModelRequest, ToolDefinition

Sink = Callable[[Event], Awaitable[None]]
"""Takes events in order; awaiting it is how a slow reader slows the writer down."""

Mode = Literal["plan", "ask", "edit"]


class Model(Protocol):
    """A model that answers requests with a stream of events."""

    @property
    def info(self) -> ModelInfo:
        """Name, provider, capabilities."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Event, None]:
        """Stream one reply.

        Block indices start at 0. A complete reply ends with `Status(state="finished")`; a stream
        that breaks raises `StreamBroken` after a `BlockAbort` for each open block. Closing the
        iterator, or cancelling the task that reads it, closes the connection at once.

        Raises:
            ModelError: classified; see `core/errors.py`.
        """

    async def aclose(self) -> None:
        """Release connections and children."""


# --- files -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as the user sees it: the open buffer if there is one, else the disk.

    `path` is relative to its root, with forward slashes. `text` has the line ends it has.
    `version` names exactly this content; a write that names another version is refused.
    """

    path: str
    text: str
    version: str


@dataclass(frozen=True, slots=True)
class PathFacts:
    """What permissions need to know about a path, after links are resolved.

    `path` is relative to the root; `target` is where a link leads, shown in prompts.
    """

    path: str
    exists: bool
    secret: bool = False
    protected: bool = False
    target: str | None = None

    @property
    def place(self) -> str:
        """The name of the file itself, behind all links."""
        return self.path if self.target is None else self.target


class Files(Protocol):
    """The one way to files: containment, buffers over disk, encodings, atomic writes.

    Every method raises `PathRefused` for a path outside the workspace, or one that is not a
    regular file, and `ToolError` for a file that cannot be read or decoded.
    """

    async def facts(self, path: str) -> PathFacts:
        """Resolve a path without opening it."""

    async def read(self, path: str) -> FileText:
        """The text of a file."""

    async def write(
        self, path: str, text: str, *, base: str | None, place: str | None = None
    ) -> FileText:
        """Replace a file's text, byte-faithful to its encoding, line ends, mode and final newline.

        Only the lines that differ change their bytes. `base` is the version the new text was made
        from, None for a file that must not exist yet; missing parents are created. `place` is
        where `path` was found to lead (`PathFacts.place`): approval was given for that.

        Raises:
            StaleFile: the content is no longer `base`, or the path leads elsewhere by now.
        """


class Buffers(Protocol):
    """The documents an editor holds open. Paths are absolute and free of links."""

    def open_text(self, path: Path) -> tuple[str, int] | None:
        """Text and version of an open document; None when the editor does not hold it."""

    async def replace(self, path: Path, new_text: str, *, base: int) -> int:
        """Make a versioned edit of an open document and give its new version.

        Raises:
            StaleFile: the document is no longer at version `base`, or the editor refused.
        """


# --- search and commands ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GrepMatch:
    """One matching or context line; `line_no` counts from 1."""

    path: str
    line_no: int
    text: str
    is_match: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    """Results of a listing, and whether there were more than asked for."""

    paths: tuple[str, ...] = ()
    matches: tuple[GrepMatch, ...] = ()
    truncated: bool = False
    skipped_secrets: int = 0


class TextSearch(Protocol):
    """File names and text of the workspace; ignore files are honoured, secrets are left out."""

    async def glob(self, pattern: str, *, path: str = ".", limit: int = 200) -> Found:
        """Files whose path below `path` matches a glob such as `src/**/*.py`, sorted."""

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
        """Lines that match a regular expression (or literal text).

        Raises:
            InvalidArguments: the expression does not parse.
        """


@dataclass(frozen=True, slots=True)
class Passage:
    """Part of a file; lines count from 1, inclusive. A higher score is a better match."""

    path: str
    start_line_no: int
    end_line_no: int
    text: str
    score: float


class Passages(Protocol):
    """Finds the parts of the workspace that best fit a question."""

    async def find(self, question: str, *, limit: int = 5) -> Sequence[Passage]:
        """Best first; empty when nothing fits."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a shell command ended. `output` is stdout and stderr as they came, capped."""

    exit_code: int | None
    output: str
    timed_out: bool = False


class Shell(Protocol):
    """Runs shell commands in the workspace, each in its own process group."""

    async def run(self, command: str, *, timeout_s: float) -> CommandResult:
        """Run to the end or the time limit; cancelling kills the whole group."""


# --- tools -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Access:
    """What a call would touch, as facts for the permission policy.

    `paths` for file tools, `command` for the shell.
    """

    effect: Literal["read", "write", "execute", "none"]
    paths: tuple[PathFacts, ...] = ()
    command: str | None = None


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool answers. `summary` is one line that stands in for `content` later."""

    content: str
    summary: str = ""
    diff: tuple[FileDiff, ...] = ()
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that is ready to run: what it would do, and how to do it.

    Approval is given for exactly this; `run` refuses with `StaleFile` when the world has moved.
    """

    title: str
    access: Access
    run: Callable[[], Awaitable[ToolOutput]]
    diff: tuple[FileDiff, ...] = ()


@dataclass(slots=True)
class ToolContext:
    """What a tool may know of the session it runs in.

    `seen` maps a path to the version the model last read or wrote.
    """

    call_id: str = ""
    seen: MutableMapping[str, str] = field(default_factory=dict)


class Tool(Protocol):
    """Something the model can call."""

    @property
    def definition(self) -> ToolDefinition:
        """Name, description, parameters."""

    @property
    def mutates(self) -> bool:
        """Whether calls change anything; such calls run one at a time, in call order."""

    @property
    def idempotent(self) -> bool:
        """Whether a call that timed out may be tried again."""

    @property
    def timeout_s(self) -> float:
        """Time limit of one attempt of `Prepared.run`."""

    async def prepare(self, arguments: dict[str, JsonValue], context: ToolContext) -> Prepared:
        """Check the arguments and find out what the call would do, changing nothing.

        Raises:
            InvalidArguments: the arguments do not fit the schema.
            ToolError: the call cannot be carried out.
        """


class Tools(Protocol):
    """The tools of a session, in a stable order."""

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """All tools, as a model sees them."""

    def get(self, name: str) -> Tool | None:
        """A tool by its exact name."""


# --- permissions -----------------------------------------------------------------------------

Verdict = Literal["allow", "ask", "deny"]
Answer = Literal["allow_once", "allow_always", "reject_once", "reject_always"]


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and the reason for it, as a sentence for people."""

    verdict: Verdict
    reason: str = ""


class Policy(Protocol):
    """Decides about a call from facts alone."""

    def decide(self, tool: ToolDefinition, access: Access, mode: Mode) -> Decision:
        """Pure: the same facts give the same decision."""


class Approver(Protocol):
    """Asks a person."""

    async def request(self, call: ToolCall, prepared: Prepared, reason: str) -> Answer | None:
        """The person's answer; None when nobody can or did answer, which means no."""


class Approvals(Protocol):
    """Standing answers a person gave earlier in a session."""

    def recall(self, call: ToolCall, access: Access) -> Answer | None:
        """The standing answer that covers exactly this call, if there is one."""

    def remember(self, call: ToolCall, access: Access, answer: Answer) -> None:
        """Keep an "always" answer; other answers are not kept."""


# --- memory ----------------------------------------------------------------------------------


class Memory(Protocol):
    """Chooses which part of a history is sent."""

    async def window(self, items: Sequence[Item]) -> list[Item]:
        """The items to send, in order, with every call next to its results.

        Called before each request. The current turn (all from the last prompt on) is always kept,
        and while it grows the part before it stays the same, so that prompt caches hit.
        """
