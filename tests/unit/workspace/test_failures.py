from __future__ import annotations

import errno
import os

import pytest

from agentls.core.errors import PathRefused, ToolError
from agentls.workspace.failures import quoted, tool_error


def test_paths_show_everything_on_one_line() -> None:
    assert quoted("a\nb\t\x1b[2J\u202e") == r"'a\nb\t\u{1b}[2J\u{202e}'"
    assert quoted("x" * 400) == f"'{'x' * 300}…'"


@pytest.mark.parametrize(
    ("number", "kind", "text"),
    [
        (errno.ENOENT, ToolError, "'a' does not exist."),
        (errno.ENOSPC, ToolError, "'a' was not written: the disk is full. Nothing was changed."),
        (errno.EACCES, ToolError, "'a' cannot be written: permission denied. Nothing was changed."),
        (
            errno.EROFS,
            ToolError,
            "'a' was not written: the file system is read-only. Nothing was changed.",
        ),
        (
            errno.ELOOP,
            PathRefused,
            "'a' changed into something else while it was being opened.",
        ),
        (errno.EISDIR, PathRefused, "'a' is a folder, not a file."),
        (errno.ENXIO, PathRefused, "'a' is a device, pipe or socket, not a file."),
        (errno.EIO, ToolError, "'a' cannot be written: Input/output error. Nothing was changed."),
    ],
)
def test_each_failure_says_what_happened(number: int, kind: type[ToolError], text: str) -> None:
    error = tool_error(OSError(number, os.strerror(number)), "a", "written")
    assert (type(error), str(error)) == (kind, text)
