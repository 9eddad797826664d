"""A person at a terminal: types, waits to see something, looks at the screen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pexpect
import pyte

from support.cli_process import Cli


class Terminal:
    """A person at a terminal."""

    def __init__(self, child: pexpect.spawn[str], rows: int, columns: int) -> None:
        self.child = child
        self._columns = columns
        self._screen = pyte.HistoryScreen(columns, rows, history=5000)
        self._stream = pyte.Stream(self._screen)
        child.logfile_read = self

    def write(self, text: str) -> None:
        self._stream.feed(text)

    def flush(self) -> None:
        pass

    @property
    def lines(self) -> list[str]:
        """What can be seen or scrolled to, without empty lines."""
        above = [
            "".join(row[x].data for x in range(self._columns)) for row in self._screen.history.top
        ]
        return [line.rstrip() for line in [*above, *self._screen.display] if line.strip()]

    @property
    def pid(self) -> int:
        assert self.child.pid is not None
        return self.child.pid

    def enter(self, text: str) -> None:
        self.child.send(text + "\r")

    def see(self, text: str) -> None:
        self.child.expect_exact(text)

    def prompt(self, mode: str = "ask") -> None:
        self.see(f"{mode}>")

    def end(self) -> int | None:
        self.child.expect(pexpect.EOF)
        self.child.close()
        code: int | None = self.child.exitstatus
        return code


@contextmanager
def talking(cli: Cli, *arguments: str, rows: int = 40, columns: int = 100) -> Iterator[Terminal]:
    child = cli.terminal(*arguments, rows=rows, columns=columns)
    try:
        yield Terminal(child, rows, columns)
    finally:
        child.close(force=True)
