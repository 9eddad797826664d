"""The `agentls` command: parse, dispatch, and turn every end into an exit code.

Imports the standard library only; each command brings what it needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from agentls.cli.arguments import Arguments, parse
from agentls.cli.streams import Output, OutputLost, discard, prepare_streams
from agentls.hardening import forbid_inspection

if TYPE_CHECKING:
    from agentls.cli.start import Environment


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and give its exit code. Argument errors exit with 2 at once."""
    forbid_inspection()
    stdout, stderr = prepare_streams()
    try:
        arguments = _parse(argv, stdout)
        if arguments.command == "serve":
            return _serve(arguments, stderr)
        code = _run(arguments, stdout, stderr)
        stdout.flush()
    except KeyboardInterrupt:
        return 130
    except OutputLost as lost:
        return _output_failed(lost, stdout, stderr)
    return code


def _parse(argv: Sequence[str] | None, stdout: Output) -> Arguments:
    try:
        return parse(sys.argv[1:] if argv is None else argv)
    except SystemExit:
        stdout.flush()  # the help may have no reader
        raise


def _run(arguments: Arguments, stdout: Output, stderr: Output) -> int:
    from agentls.cli.failures import exit_code, internal_error, report
    from agentls.cli.interrupts import Interrupts
    from agentls.cli.start import Environment, set_up_log
    from agentls.core.errors import AgentlsError

    set_up_log(arguments.verbose)
    interrupts = Interrupts(stdout, stderr)
    environment = Environment(arguments, stdout, stderr, interrupts)
    try:
        return _command(arguments)(environment)
    except AgentlsError as error:
        report(error, stderr)
        return exit_code(error)
    except OutputLost:
        raise
    except Exception as error:  # the one boundary for defects
        report(internal_error(error), stderr)
        return 1


def _command(arguments: Arguments) -> Callable[[Environment], int]:
    match arguments.command:
        case "ask":
            from agentls.cli.ask import ask

            return ask
        case "doctor":
            from agentls.cli.doctor import doctor

            return doctor
        case "model pull":
            from agentls.cli.models import pull

            return pull
        case "model list":
            from agentls.cli.models import show

            return show
        case "model refresh":
            from agentls.cli.refresh import refresh

            return refresh
        case "key set":
            from agentls.cli.keys import store

            return store
        case "key list":
            from agentls.cli.keys import show as show_keys

            return show_keys
        case "key delete":
            from agentls.cli.keys import delete

            return delete
        case "repl" | "serve":  # `main` has served already
            from agentls.cli.repl import repl

            return repl


def _serve(arguments: Arguments, stderr: Output) -> int:
    """Start the server with nothing loaded that it does not need: editors wait for it."""
    from agentls.cli.start import find_workspace, flags_of
    from agentls.core.errors import UsageError
    from agentls.lsp.server import serve

    try:
        workspace = find_workspace(arguments.workspace)
    except UsageError as error:
        from agentls.cli.failures import exit_code, report

        report(error, stderr)
        return exit_code(error)
    return serve(workspace, flags=flags_of(arguments), verbose=arguments.verbose)


def _output_failed(lost: OutputLost, stdout: Output, stderr: Output) -> int:
    """A reader that has left is no error worth words; a full disk is."""
    discard(stdout.stream)
    if not isinstance(lost.reason, BrokenPipeError | InterruptedError):
        reason = lost.reason.strerror or str(lost.reason)
        try:
            stderr.line(f"agentls: error: the output cannot be written: {reason}")
        except OutputLost:
            discard(stderr.stream)
    return 1


if __name__ == "__main__":
    sys.exit(main())
