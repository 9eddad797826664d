"""What rules see of a command line against what a real bash does with it."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from agentls.permissions.ansi_quotes import decode
from agentls.permissions.command_patterns import CommandPattern
from agentls.permissions.commands import plain

PIECES = [
    "forbidden", "forbidden x", "'forbidden x'", '"forbidden x"', "forb", "idden", "ls", "x", "'",
    '"', "\\", "$(", ")", "`", "(", "{ ", "; }", ";", "&&", "||", "|", "\n", " ", " ", " ", ">f",
    "2>&1", "<<E\n", "\nE\n", "A=1 ", "env ", "nohup ", "bash -c ", "eval ", "#", "$'", "$x",
    '"$x"', "${x:-", "}", "case a in a) ", ";; esac", "if true; then ", "; fi",
    "for i in 1; do ", "; done", "<(", "<<<", "\\\n", "!", "command ", "exec ", "time ",
    "{forbidden,x}", "find . -exec ", "\\;", "f() ", "f", "\t", "''", "a=(", " echo ",
]  # fmt: skip
BASH = shutil.which("bash") or "/bin/bash"


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """The only commands the lines can reach, one of which leaves a trace."""
    folder = tmp_path / "bin"
    folder.mkdir()
    traced = folder / "forbidden"
    traced.write_text(f'#!{BASH}\n: > "$TRACE"\n')
    traced.chmod(0o755)
    for name in ("env", "nohup", "bash", "find", "true", "ls"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def test_a_deny_rule_sees_whatever_bash_runs(commands: Path, tmp_path: Path) -> None:
    rule = CommandPattern.parse("forbidden *")
    chosen = random.Random(20)  # noqa: S311 - a fixed sequence, not a secret
    ran = 0
    missed = []
    for number in range(500):
        line = "".join(chosen.choices(PIECES, k=chosen.randint(1, 8)))
        line += chosen.choice(["", "forbidden x", "; forbidden", "\nforbidden", "$(forbidden x)"])
        trace = tmp_path / f"trace{number}"
        work = tmp_path / f"work{number}"
        work.mkdir()
        subprocess.run(
            [BASH, "-c", line],
            cwd=work,
            env={"PATH": str(commands), "TRACE": str(trace)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=False,
        )
        if trace.exists():
            ran += 1
            if not rule.covers(line):
                missed.append(line)

    assert missed == []
    assert ran > 20


def test_the_inside_of_dollar_quotes_is_read_as_bash_reads_it() -> None:
    pieces = [
        *'abcexuUrnt0123457fFgc?\\"{}@ é',
        *("\\x", "\\x{", "\\u", "\\U", "\\c", "\\0", "\\7", "\\'", "\\e", "\\xc3\\xa9", "\\N{x}"),
    ]
    chosen = random.Random(3)  # noqa: S311 - a fixed sequence, not a secret
    insides = ["".join(chosen.choices(pieces, k=chosen.randint(1, 6))) for _ in range(20_000)]
    insides = [inside for inside in insides if _is_closed(inside)][:6_000]
    script = "\n".join(f"printf '%s\\0' $'{inside}'" for inside in insides)

    printed = subprocess.run(
        [BASH], input=script.encode(), capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    ).stdout

    seen = [part.decode("utf-8", "replace") for part in printed.split(b"\0")[:-1]]
    assert len(seen) == len(insides) > 4_000
    differing = [
        (inside, read, decode(inside))
        for inside, read in zip(insides, seen, strict=True)
        if decode(inside) != read
    ]
    assert differing == []


def _is_closed(inside: str) -> bool:
    """Whether the last backslash escapes something, and no code is beyond what Unicode has."""
    return re.fullmatch(r"(?:[^'\\]|\\.)*", inside) is not None and not re.search(
        r"\\U[0-9a-fA-F]{6}|\\[uU]0*[dD][89a-fA-F]", inside
    )


def test_what_is_plain_is_to_bash_just_these_words() -> None:
    alphabet = [
        *"ab1 -_./:=,@%+~*?[]{}()<>|&;!#$`'\"\\\t\n^é\u00a0",
        "'x y'",
        '"a b"',
        " 2>&1",
        " ",
    ]
    chosen = random.Random(7)  # noqa: S311 - a fixed sequence, not a secret
    lines = ("".join(chosen.choices(alphabet, k=chosen.randint(1, 8))) for _ in range(40_000))
    cases = [(line, words) for line in lines if (words := plain(line)) is not None][:2_000]
    script = "\n".join(f"printf '%s\\0' {line.strip()}; printf '\\n\\0'" for line, _ in cases)

    printed = subprocess.run(
        [BASH, "-c", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    ).stdout.decode()

    seen = [tuple(part.split("\0")[:-1]) for part in printed.split("\n\0")[:-1]]
    assert seen == [words for _, words in cases]
    assert len(cases) > 500
