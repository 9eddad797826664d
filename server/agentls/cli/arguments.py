"""The command line's grammar: what can be asked for, and how it is spelled.

Standard library only, so that `agentls --version` and `agentls serve` start at once. Knows nothing
of what the commands do.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, cast

from agentls import __version__

if TYPE_CHECKING:
    from agentls.core.ports import Mode

Command = Literal[
    "repl",
    "ask",
    "serve",
    "doctor",
    "model pull",
    "model list",
    "model refresh",
    "key set",
    "key list",
    "key delete",
]

_EXAMPLES = """\
examples:
  agentls                                       talk about the repository you are in
  agentls ask "where is the retry limit set?"   one answer, then exit
  git diff | agentls ask "review this:" -       the question from arguments and standard input
  agentls ask --yes --json "fix the typo"       for scripts: approve everything, events as JSON
  agentls doctor                                why does it not work?

exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted
"""


@dataclass(frozen=True, slots=True)
class Arguments:
    """A parsed command line. `workspace`, `mode` and `model` are None when not given.

    `question` holds the words of `ask`, `name` the model of `model pull` or the provider of
    `key` and `model refresh`.
    `verbose` counts `-v`.
    """

    command: Command
    workspace: Path | None = None
    mode: Mode | None = None
    model: str | None = None
    yes: bool = False
    json: bool = False
    verbose: int = 0
    question: tuple[str, ...] = ()
    name: str = ""


class _Parser(argparse.ArgumentParser):
    """Ends in exit status 2, with usage, and without echoing control characters."""

    def error(self, message: str) -> NoReturn:
        """Report wrong usage."""
        from agentls.core.redaction import Redactor

        # Somebody may have tried to pass a key.
        message = re.sub(r"(?s)(ACTION: invalid choice): .* (?=\(choose)", r"\1 ", message)
        message = Redactor()(message)
        printable = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in message)
        if message.startswith("argument COMMAND:"):
            printable += '\nTo ask a question: agentls ask "..."'
        super().error(printable)


def parse(argv: Sequence[str]) -> Arguments:
    """Parse the words after the program's name.

    Raises:
        SystemExit: 0 after `--help` and `--version`, 2 for anything unknown, with usage on stderr.
    """
    parser = _build()
    known, extra = parser.parse_known_args(argv)
    question = tuple(getattr(known, "question", ()))
    if extra:
        # argparse takes words after an option that interrupts them for extra ones.
        if known.subcommand == "key" and known.action == "set":
            parser.error("a key is not taken as an argument, where others can see it")
        if known.subcommand != "ask" or any(word.startswith("-") and word != "-" for word in extra):
            parser.error(f"unrecognized arguments: {' '.join(extra)}")
        question += tuple(extra)
    return Arguments(
        command=_command(known),
        workspace=known.workspace,
        mode=known.mode,
        model=known.model,
        yes=known.yes,
        json=known.json,
        verbose=known.verbose,
        question=question,
        name=getattr(known, "name", ""),
    )


def _command(known: argparse.Namespace) -> Command:
    name = known.subcommand or "repl"
    if name in ("model", "key"):
        name = f"{name} {known.action}"
    return cast("Command", name)


def _build() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="agentls",
        usage="agentls [options] [ask QUESTION ... | serve | doctor "
        "| model pull NAME|list|refresh [PROVIDER] | key set|delete PROVIDER|list]",
        description="A coding agent for the workspace you are in. Without a command: a "
        "conversation in the terminal.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_common(parser, defaults=True)
    parser.add_argument("--version", action="version", version=f"agentls {__version__}")
    commands = parser.add_subparsers(
        dest="subcommand",
        metavar="COMMAND",
        title="commands",
        prog="agentls",
        parser_class=_Parser,
    )
    ask = _add(commands, "ask", "answer one question and exit")
    ask.add_argument(
        "question",
        nargs="*",
        metavar="QUESTION",
        help="the question; '-' stands for standard input, which is also read when it is a pipe "
        "and no question is given",
    )
    serve = _add(commands, "serve", "speak LSP on standard input and output, for editors")
    # Editors' client libraries add these by themselves. stdio is the only transport, and
    # `initialize` names the client's process.
    serve.add_argument("--stdio", action="store_true", help=argparse.SUPPRESS)
    serve.add_argument("--clientProcessId", type=int, help=argparse.SUPPRESS)
    _add(commands, "doctor", "check what is set up, what works and what to do about the rest")
    model = _add(
        commands, "model", "weights of models that run here, and what providers' models can do"
    )
    actions = model.add_subparsers(
        dest="action", metavar="ACTION", required=True, title="actions", parser_class=_Parser
    )
    pull = _add(actions, "pull", "fetch a model's weights")
    pull.add_argument("name", metavar="NAME", help="a name that `agentls model list` shows")
    _add(actions, "list", "the catalogue, and what is installed")
    refresh = _add(actions, "refresh", "ask providers what their models can do, and keep it")
    refresh.add_argument("name", metavar="PROVIDER", nargs="?", default="", help="such as openai")
    _add_key(commands)
    return parser


def _add_key(commands: argparse._SubParsersAction[_Parser]) -> None:
    key = _add(commands, "key", "providers' keys, kept in the system's keyring")
    actions = key.add_subparsers(
        dest="action", metavar="ACTION", required=True, title="actions", parser_class=_Parser
    )
    kept = _add(actions, "set", "ask for a provider's key, or read it from a pipe, and keep it")
    kept.add_argument("name", metavar="PROVIDER", help="such as openai")
    _add(actions, "list", "which providers have a key, and from where")
    gone = _add(actions, "delete", "delete a provider's key from the keyring")
    gone.add_argument("name", metavar="PROVIDER", help="such as openai")


def _add(
    commands: argparse._SubParsersAction[_Parser],
    name: str,
    summary: str,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", allow_abbrev=False
    )
    _add_common(parser, defaults=False)
    return parser


def _add_common(parser: argparse.ArgumentParser, *, defaults: bool) -> None:
    """Options taken before and after the subcommand; the later place must not reset the earlier."""
    group = parser.add_argument_group("common options")

    def default(value: object) -> object:
        return value if defaults else argparse.SUPPRESS

    group.add_argument(
        "--workspace",
        type=Path,
        metavar="DIR",
        default=default(None),
        help="the folder to work in (default: the enclosing git repository, else this folder)",
    )
    group.add_argument(
        "--mode",
        choices=("plan", "ask", "edit"),
        default=default(None),
        help="plan: read only; ask: ask before changes (default); edit: make changes, asking",
    )
    group.add_argument(
        "--model",
        metavar="NAME",
        default=default(None),
        help="the model to use, as NAME or PROVIDER/NAME",
    )
    group.add_argument(
        "--yes",
        action="store_true",
        default=default(False),
        help="approve everything that would be asked, for scripts",
    )
    group.add_argument(
        "--json",
        action="store_true",
        default=default(False),
        help="one JSON object a line on standard output, the result last",
    )
    group.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=default(0),
        help="log to standard error; twice for more",
    )
