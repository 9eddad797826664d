"""Reads shell command lines for rules. Pure; runs nothing and expands nothing.

Two readings that err to opposite sides. `plain` knows only the simplest form, a command and its
words, and gives None for all else: allow rules rest on it. `invocations` finds whatever a line
might run, rather too much than too little: deny and ask rules rest on it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from agentls.core.text import visible
from agentls.permissions.shell_lines import EXPANSION, KEYWORDS, MAX_NESTING, read_line

Words = tuple[str, ...]

_PLAIN = re.compile(
    r"""(?:[A-Za-z0-9_@%+=:,./ \t-]|[^\x00-\x7f]|'[^'\x00-\x1f\x7f]*'|"[^"\\$`!\x00-\x1f\x7f]*")+"""
)
_STDERR_TO_STDOUT = re.compile(r"[ \t]+2>&1[ \t\n]*\Z")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_SPECIAL = re.compile(r"[\s;&|`$()<>'\"]")
_MAX_WORDS_BEHIND = 40
"""Words looked at from each word of a wrapper on, so that long lines take linear time."""

_WRAPPERS = frozenset({
    "sudo", "doas", "su", "env", "nohup", "nice", "ionice", "chrt", "taskset", "timeout",
    "stdbuf", "setsid", "time", "xargs", "parallel", "watch", "command", "builtin", "exec",
    "eval", "trap", "script", "strace", "ltrace", "chroot", "unshare", "nsenter", "bwrap",
    "firejail", "busybox", "toybox", "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish",
    "if", "then", "elif", "else", "while", "until", "do", "!", "{", "}", "coproc", "function",
    "select", "for", "case", "in",
})  # fmt: skip
"""Words after which another command may follow, anywhere, or inside one of their words."""

_EXEC_FLAGS = {
    "find": frozenset({"-exec", "-execdir", "-ok", "-okdir"}),
    "fd": frozenset({"-x", "-X", "--exec", "--exec-batch"}),
    "fdfind": frozenset({"-x", "-X", "--exec", "--exec-batch"}),
}


def plain(command: str) -> Words | None:
    """The words of a single plain command; None if it is, or might be, anything more.

    No operator, expansion, assignment, redirection or unusual character; only `2>&1` at the end is
    disregarded.
    """
    command = _STDERR_TO_STDOUT.sub("", command).strip(" \t\n")
    if not _PLAIN.fullmatch(command) or visible(command) != command:
        return None
    if any(char.isspace() and char not in " \t" for char in command):
        return None
    try:
        words = tuple(shlex.split(command))
    except ValueError:
        return None
    # `A=1 git` sets a variable; zsh expands `=git` to a path.
    if not words or "=" in words[0] or any(word.startswith("=") for word in words):
        return None
    if words[0] in KEYWORDS:
        return None
    return words


def invocations(command: str, depth: int = 0) -> Iterator[Words]:
    """Everything a command line might run, as words from the command's name on.

    Looks behind operators, substitutions, assignments and commands that run others, into strings
    given to shells; where quoting is in doubt, at the text with all quotes taken out; and where the
    line may hold a mistake, at each line of it by itself.
    """
    reading = read_line(command)
    for words in reading.commands:
        yield from _reachable(words, depth)
    if reading.doubtful or depth > MAX_NESTING:
        for words in _crude(command):
            yield from _reachable(words, depth)
    if reading.irregular and "\n" in command:
        for line in command.split("\n"):
            yield from invocations(line, depth)


def base_name(word: str) -> str:
    """A command's name without its folder and without expansions, in lower case."""
    return word.replace(EXPANSION, "").replace("}", "").rpartition("/")[2].casefold() or word


def _reachable(words: Sequence[str], depth: int) -> Iterator[Words]:
    start = 0
    while start < len(words) and _ASSIGNMENT.match(words[start]):
        start += 1
    words = tuple(words[start:])
    if not words:
        return
    yield words
    name = base_name(words[0])
    flags = _EXEC_FLAGS.get(name, frozenset())
    # `$x rm` runs rm when x is empty or a wrapper itself.
    wraps = name in _WRAPPERS or EXPANSION in words[0]
    if not wraps and not flags:
        return
    for at in range(1, len(words)):
        if words[at - 1] in flags:
            yield from _reachable(words[at:], depth)
        elif wraps:
            yield words[at : at + _MAX_WORDS_BEHIND]
            if name != "eval" and depth <= MAX_NESTING and _SPECIAL.search(words[at]):
                yield from invocations(words[at], depth + 1)
    if name == "eval" and depth <= MAX_NESTING:
        yield from invocations(" ".join(words[1:]), depth + 1)


def _crude(text: str) -> Iterator[Words]:
    text = re.sub(r"\\\n|['\"\\]", "", text)
    text = re.sub(r"\$\{?IFS\}?|,|\0", " ", text)
    text = re.sub(r"\$\{?[!#]?\w+(?::?[-=+?])?", ";", text)
    for part in re.split(r"[\n\r;&|()`{}<>$]", text):
        if words := part.split():
            yield tuple(words)
