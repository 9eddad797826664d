"""What rules see of a shell command line."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentls.permissions.command_patterns import CommandPattern
from agentls.permissions.commands import invocations, plain
from agentls.permissions.shell_lines import read_line

STATUS = CommandPattern.parse("git status")
REMOVE = CommandPattern.parse("rm *")

CHAIN = "; ".join(["echo fine"] * 60)

NOT_PLAIN = [
    "git status\nrm x",
    "git status\rrm x",
    "git status; rm x",
    "git status;",
    "git status &",
    "git status & rm x",
    "git status && rm x",
    "git status || rm x",
    "git status | sh",
    "git status |& sh",
    "git status $(rm x)",
    "git status `rm x`",
    "git status <(rm x)",
    "git status >(rm x)",
    "git status ${x@P}",
    "git status $x",
    'git status "$x"',
    'git status "$(rm x)"',
    "git status $'x'",
    "git status >f",
    "git status > f",
    "git status 2>f",
    "git status >> f",
    "git status &> f",
    "git status < f",
    "git status <<EOF\nrm x\nEOF",
    "git status <<< x",
    "git status 2>&1 >f",
    "git status 2>&1; rm x",
    "git status 2>&1 | sh",
    "git status 1>&2",
    "A=1 git status",
    "PATH=. git status",
    "env git status",
    "sudo git status",
    "command git status",
    "(git status)",
    "{ git status; }",
    "! git status",
    "git status *",
    "git status ?",
    "git status [a]",
    "git status {a,b}",
    "git status ~",
    "git status #x",
    "git status \\\nrm",
    "g\\it status",
    "git status !x",
    "git status\x00x",
    "git status\x0brm",
    "git\u00a0status",
    "git status\u202e",
    "git status\u2028rm x",
    "=git status",
    "git status 'x",
    'git status "x',
    CHAIN + "; git status",
    "git status; " + CHAIN,
    "",
    " ",
]


@pytest.mark.parametrize("command", NOT_PLAIN)
def test_an_allow_rule_covers_nothing_but_its_command(command: str) -> None:
    assert not STATUS.permits(command)


@pytest.mark.parametrize("command", NOT_PLAIN)
def test_what_is_more_than_a_command_and_its_words_is_not_plain(command: str) -> None:
    wrapped = ("env git status", "sudo git status", "command git status")

    assert plain(command) is None or command in wrapped


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "  git   status ",
        "git status\n",
        "git 'status'",
        '"git" status',
        "git status 2>&1",
        "git status  2>&1 ",
    ],
)
def test_the_ways_to_write_the_same_plain_command(command: str) -> None:
    assert plain(command) == ("git", "status")
    assert STATUS.permits(command)


def test_quoted_operators_are_words() -> None:
    assert plain("grep -n 'a|b;$(c)' \"d & e\" naïve.txt") == (
        "grep", "-n", "a|b;$(c)", "d & e", "naïve.txt",
    )  # fmt: skip


@settings(deadline=None)
@given(
    st.sampled_from(
        [";", "&", "&&", "|", "||", "\nls", "`", "$(", "<(", ">", "<", "<<", "$x", "\\"]
    ),
    st.text("abrm -x'\"\n ", max_size=12),
    st.sampled_from(["git status", "git log --oneline", "npm test"]),
)
def test_no_rule_allows_a_command_with_an_operator_appended(
    operator: str, rest: str, command: str
) -> None:
    everything = CommandPattern.parse("*")

    assert everything.permits(command)
    assert not everything.permits(f"{command} {operator} {rest}")
    assert not everything.permits(command + operator + rest)


@settings(deadline=None)
@given(st.text(max_size=40))
def test_what_is_plain_means_the_same_to_a_shell(command: str) -> None:
    words = plain(command)

    # Quoted anew, nothing in the words is special: the line had no hidden structure.
    if words is not None:
        assert [words] == _simple(command)


def _simple(command: str) -> list[tuple[str, ...]]:
    reading = read_line(command.removesuffix("2>&1"))
    # `case` anywhere is always in doubt, as what follows it need not close its brackets.
    assert not reading.doubtful or "case" in reading.commands[0]
    return list(reading.commands)


@pytest.mark.parametrize(
    ("pattern", "command", "fits"),
    [
        ("npm *", "npm", True),
        ("npm *", "npm run build", True),
        ("npm *", "npmx", False),
        ("npm run *", "npm install", False),
        ("npm run test*", "npm run test:unit", True),
        ("npm run test*", "npm run test unit", False),
        ("git * --stat", "git diff HEAD --stat", True),
        ("git:*", "git log", True),
        ("git status", "git status -s", False),
        ("git status", "./git status", False),
        ("git status", "/opt/git status", False),
        ("git status", "GIT status", False),
        ("git commit -m 'a b'", 'git commit -m "a b"', True),
        ("ls ?", "ls a", True),
        ("ls ?", "ls ab", False),
    ],
)
def test_how_an_allow_pattern_fits(pattern: str, command: str, fits: bool) -> None:
    assert CommandPattern.parse(pattern).permits(command) is fits


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("find *", "find . -exec rm x"),
        ("find *", "find . -execdir rm x"),
        ("find *", "find . -delete"),
        ("*", "find . -fprint0 x"),
        ("rg *", "rg --pre=sh x"),
        ("git *", "git -c core.pager=sh log"),
        ("git *", "git diff --output=x"),
        ("git *", "git grep -Osh x"),
        ("git *", "git -C elsewhere status"),
        ("sort *", "sort -o x y"),
        ("/usr/bin/find *", "/usr/bin/find . -delete"),
    ],
)
def test_no_wildcard_stands_for_a_harmful_option(pattern: str, command: str) -> None:
    assert not CommandPattern.parse(pattern).permits(command)


def test_a_harmful_option_can_be_allowed_by_name() -> None:
    assert CommandPattern.parse("git -C docs *").permits("git -C docs status")
    assert CommandPattern.parse("find . -delete").permits("find . -delete")


RUNS_RM = [
    "rm",
    "rm x",
    "rm -rf /",
    "/bin/rm x",
    "./rm x",
    "RM x",
    "r\\m x",
    "'rm' x",
    'r"m" x',
    "$'rm' x",
    "$'\\x72m' x",
    "$'r\\u6d' x",
    "$'r\\U6d' x",
    "$'\\x72\\u6d' x",
    "$'\\x{72}m' x",
    "$'\\x{7272}m' x",
    "$'\\162\\555' x",
    "$'rm\\0zzz' x",
    "$'r\\x0zz'm x",
    "$'rm\\c@zzz' x",
    "/bin/$'r\\u6d' x",
    "bash -c $'echo a\\u0arm x'",
    '$"rm" x',
    'r$"m" x',
    'bash -c $"rm x"',
    "\\rm x",
    "r\\\nm x",
    "ls; rm x",
    "ls;rm x",
    "ls && rm x",
    "ls || rm x",
    "ls | rm x",
    "ls |& rm x",
    "ls & rm x",
    "ls\nrm x",
    "ls # it's fine\nrm x",
    "(rm x)",
    "(cd a && rm x)",
    "{ rm x; }",
    "! rm x",
    "echo $(rm x)",
    'echo "$(rm x)"',
    'echo "a $(echo "b" "$(rm "x")") c"',
    "echo `rm x`",
    "nohup `# a ; b` rm x",
    'echo "`rm x`"',
    "echo `echo \\`rm x\\``",
    "cat <(rm x)",
    "tee >(rm x)",
    "echo ${y:-$(rm x)}",
    'x="$(case a in a) rm x;; esac)"',
    "case a in a) rm x;; esac",
    "if true; then rm x; fi",
    "while true; do rm x; done",
    "for x in a b; do rm $x; done",
    "f() { rm x; }; f",
    "function f { rm x; }; f",
    "A=1 rm x",
    "A=1 B='2 3' rm x",
    "A=$(rm x) ls",
    "A=(1 2) rm x",
    ">f rm x",
    "2>&1 rm x",
    "rm x > f",
    "rm>f x",
    "ls 2>&1; rm x",
    "ls &>/dev/null; rm x",
    "env rm x",
    "env -i A=1 rm x",
    "sudo rm x",
    "sudo -u nobody -- rm x",
    "sudo 2>&1 rm x",
    "nohup rm x &",
    "time -p rm x",
    "nice -n 5 rm x",
    "timeout 5 rm x",
    "xargs rm",
    "ls | xargs -0 -n1 rm -f",
    "command rm x",
    "exec rm x",
    "exec -a ls rm x",
    "builtin rm x",
    "setsid rm x",
    "busybox rm x",
    "sudo env A=1 nohup rm x",
    "bash -c 'rm x'",
    'sh -c "rm x"',
    'bash -lc "ls; rm x"',
    "bash -c 'bash -c \"rm x\"'",
    "sudo bash -c 'echo `rm x`'",
    'env -S "rm x"',
    "bash <<< 'rm x'",
    "bash <<EOF\nrm x\nEOF",
    "cat <<EOF\nit's\nEOF\nrm x\ncat <<EOF\nit's\nEOF",
    "time ${y:-}rm x",
    "a=(b|c d\\\nrm x",
    ") 'x\nrm y\n'",
    "ls && ; echo 'x\nrm y\n'",
    "fi; echo 'x\nrm y\n'",
    "ls > ; echo 'x\nrm y\n'",
    "eval rm x",
    "$x rm y",
    "${x:-rm} y",
    'bash -c $x"rm y"',
    "nohup {rm,-f} x",
    "<<< y rm x",
    "eval 'r''m x'",
    'eval "rm" "x"',
    "trap 'rm x' EXIT",
    "find . -exec rm {} \\;",
    "find . -execdir rm {} +",
    "find . -exec sh -c 'rm x' \\;",
    "sudo find . -exec rm {} +",
    "{rm,-rf,x}",
    "rm${IFS}x",
    "echo 'unclosed\nrm x",
    CHAIN + "; rm x",
    CHAIN + " && sudo bash -c 'ls; rm x'",
    "; ".join(["echo fine"] * 5_000) + "; rm x",
]


@pytest.mark.parametrize("command", RUNS_RM)
def test_a_deny_rule_finds_its_command_wherever_it_is(command: str) -> None:
    assert REMOVE.covers(command)


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "echo rm x",
        "git rm x",
        "grep -r 'rm x' .",
        'git commit -m "stop; rm x"',
        "git commit -m 'a\n\nrm x'",
        "cd a && git commit -m 'a\n\nrm x' | cat; ls 2>&1 > f &",
        "echo a # rm x",
        "rmdir x",
        "find . -name rm",
        "[ -f rm ] && echo x",
        "[[ -f rm ]] && echo x",
        "cat > rm",
        "cat < rm",
        "npm run rm",
    ],
)
def test_a_deny_rule_leaves_other_commands_alone(command: str) -> None:
    assert not REMOVE.covers(command)


@pytest.mark.parametrize(
    ("pattern", "command", "fits"),
    [
        ("git push", "git push --force origin", True),
        ("git push", "git -C . push", True),
        ("git push", "git -c a=b --no-pager push", True),
        ("git push", "git stash push", False),
        ("git push", "git pull", False),
        ("git push --force", "git push -u origin --force", True),
        ("rm -rf *", "rm -v -rf x", True),
        ("rm -rf *", "rm x", False),
        ("*", "anything", True),
        ("rm:*", "rm x", True),
        ("npm pub*", "npm publish", True),
    ],
)
def test_how_a_deny_pattern_fits(pattern: str, command: str, fits: bool) -> None:
    assert CommandPattern.parse(pattern).covers(command) is fits


@settings(deadline=None)
@given(
    st.sampled_from(
        ["", "ls; ", "ls && ", "true | ", "sudo ", "env A=1 ", "x=1 ", "(", "$(", "\n"]
    ),
    st.sampled_from(["", "; ls", " && ls", " | cat", " &", ")", "\nls", " 2>&1", " # x", " > f"]),
    st.sampled_from(["rm x", "rm -rf 'a b'", 'rm "a;b"', "/bin/rm x"]),
)
def test_nothing_put_around_a_denied_command_hides_it(
    before: str, after: str, command: str
) -> None:
    assert REMOVE.covers(before + command + after)


@settings(deadline=None)
@given(st.text("ab rm\\'\"`$(){}<>|&;#\n=x", max_size=60))
def test_every_line_can_be_read(command: str) -> None:
    assert all(words for words in invocations(command))
    plain(command)


@pytest.mark.parametrize(
    "command",
    [
        "sudo " + "a " * 100_000,
        "sudo " + "'a b' " * 20_000,
        "bash -c " * 20_000,
        "$(" * 50_000,
        '"$(' * 50_000,
        "eval " * 20_000,
        "(" * 100_000,
        "'" * 99_999,
        "git " + "-a push " * 1_000,
        "a=" * 50_000,
        "\\" * 100_001,
    ],
)
def test_long_lines_are_read_in_bounded_time(command: str) -> None:
    started = time.process_time()

    CommandPattern.parse("git push --force").covers(command)
    REMOVE.permits(command)

    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "pattern", ["", " ", "git 'x", "a; b", "a && b", "a | b", "a > b", "$(a)", "a\nb"]
)
def test_a_pattern_is_one_command(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"pattern|one command"):
        CommandPattern.parse(pattern)


@pytest.mark.parametrize("command", ["case", "time git status", "if true", "coproc git", "for x"])
def test_what_begins_with_a_keyword_is_not_plain(command: str) -> None:
    assert plain(command) is None
    assert plain(f"echo {command}") is not None
