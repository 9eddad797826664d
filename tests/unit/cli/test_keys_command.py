from __future__ import annotations

import getpass
import io
import json
import warnings
from pathlib import Path

import pytest

from agentls.cli import keys
from agentls.cli.arguments import Arguments, parse
from agentls.cli.interrupts import Interrupts
from agentls.cli.start import Environment
from agentls.cli.streams import Output
from agentls.core.errors import AgentlsError, SettingsError, UsageError
from agentls.keys import SystemKeyring

KEY = "sk-test-0123456789abcdef"


class Stream(io.StringIO):
    encoding = "utf-8"

    def __init__(self, text: str = "", *, terminal: bool = False) -> None:
        super().__init__(text)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


class Kept:
    """A keyring in memory."""

    def __init__(self, **keys: str) -> None:
        self.keys = keys

    def get_password(self, service: str, username: str) -> str | None:
        return self.keys.get(username)

    def set_password(self, service: str, username: str, password: str) -> None:
        self.keys[username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.keys[username]


class NoKeyring(Kept):
    def get_password(self, service: str, username: str) -> str | None:
        raise ModuleNotFoundError

    def set_password(self, service: str, username: str, password: str) -> None:
        raise ModuleNotFoundError


class Desk:
    """`agentls key …` with its streams, a keyring, and a machine with nothing set."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, **stored: str) -> None:
        self.home = home
        self.kept = Kept(**stored)
        self._patch = monkeypatch
        for name in ("OPENAI", "GROQ", "DEEPSEEK", "ANTHROPIC", "GEMINI", "GOOGLE"):
            monkeypatch.delenv(f"{name}_API_KEY", raising=False)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
        monkeypatch.chdir(home)
        self.out, self.err = Stream(), Stream()

    def run(self, *words: str, stdin: str = "", terminal: bool = False) -> int:
        self.out, self.err = Stream(), Stream()
        self._patch.setattr("sys.stdin", Stream(stdin, terminal=terminal))
        arguments = parse(["key", *words])
        environment = Environment(arguments, Output(self.out), Output(self.err), Interrupts())
        command = {"key set": keys.store, "key list": keys.show, "key delete": keys.delete}
        try:
            return command[arguments.command](environment, SystemKeyring(lambda: self.kept))
        finally:
            assert KEY not in self.out.getvalue() + self.err.getvalue()

    def fails(self, *words: str, stdin: str = "", terminal: bool = False) -> AgentlsError:
        with pytest.raises(AgentlsError) as raised:
            self.run(*words, stdin=stdin, terminal=terminal)
        assert self.out.getvalue() == ""
        assert KEY not in str(raised.value)
        return raised.value

    @property
    def lines(self) -> list[object]:
        return [json.loads(line) for line in self.out.getvalue().split("\n") if line]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "piped", [KEY, f"{KEY}\n", f"{KEY}\r\n", f"  {KEY} \nmore\n", f"\ufeff{KEY}\n"]
)
def test_a_piped_key_is_kept_without_what_is_around_it(desk: Desk, piped: str) -> None:
    assert desk.run("set", "openai", stdin=piped) == 0
    assert desk.kept.keys == {"openai": KEY}
    assert desk.out.getvalue() == f"The key for openai is kept in {__name__}.Kept.\n"
    assert desk.err.getvalue() == ""


def test_a_typed_key_is_asked_for_hidden(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return f"{KEY} "

    monkeypatch.setattr(getpass, "getpass", ask)
    assert desk.run("set", "openai", terminal=True) == 0
    assert asked == ["Key for openai (it is not shown): "]
    assert desk.kept.keys == {"openai": KEY}


def test_a_terminal_that_would_show_it_is_not_used(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(prompt: str) -> str:
        warnings.warn("Can not control echo on the terminal.", getpass.GetPassWarning, stacklevel=2)
        return KEY

    monkeypatch.setattr(getpass, "getpass", ask)
    error = desk.fails("set", "openai", terminal=True)
    assert isinstance(error, UsageError)
    assert "cannot hide" in error.message
    assert desk.kept.keys == {}


@pytest.mark.parametrize(
    ("piped", "said"),
    [
        ("", "There is no key."),
        (" \n" + KEY, "There is no key."),
        (f"{KEY}\x1b[A", "cannot be sent"),
        (f"{KEY[:9]}\x00{KEY[9:]}", "cannot be sent"),
        (f"{KEY}é", "cannot be sent"),
        (f"{KEY}\ufffd", "cannot be sent"),
        ("x" * 20_000, "too long"),
    ],
)
def test_what_is_no_key_is_refused(desk: Desk, piped: str, said: str) -> None:
    error = desk.fails("set", "openai", stdin=piped)
    assert isinstance(error, UsageError)
    assert said in error.message
    assert desk.kept.keys == {}


@pytest.mark.parametrize("command", ["set", "delete"])
@pytest.mark.parametrize("name", ["ollama", "local", "OpenAI", "", KEY])
def test_an_unknown_provider_is_told_the_known_ones_and_not_repeated(
    desk: Desk, command: str, name: str
) -> None:
    error = desk.fails(command, name, stdin=KEY)
    assert isinstance(error, UsageError)
    assert all(known in error.hint for known in ("openai", "groq", "deepseek"))
    assert desk.run(command, name, "--json", stdin=KEY) == 2
    (line,) = desk.lines
    assert isinstance(line, dict)
    assert (line["type"], line["error"]["code"]) == ("result", "usage")


def test_without_a_keyring_it_says_what_to_do_instead(desk: Desk) -> None:
    desk.kept = NoKeyring()
    error = desk.fails("set", "openai", stdin=KEY)
    assert isinstance(error, SettingsError)
    assert "OPENAI_API_KEY" in error.hint
    assert "mode 600" in error.hint
    assert desk.run("set", "openai", "--json", stdin=KEY) == 1
    assert desk.run("list") == 0
    assert "a part of it is not installed" in desk.err.getvalue()


def test_deleting(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.kept.keys = {"openai": KEY}
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert desk.run("delete", "openai") == 0
    assert desk.kept.keys == {}
    assert desk.out.getvalue() == "The key for openai is deleted from the keyring.\n"
    assert desk.err.getvalue() == "agentls: OPENAI_API_KEY still holds one.\n"
    error = desk.fails("delete", "openai")
    assert (type(error), error.message) == (SettingsError, "The keyring has no key for openai.")
    assert desk.run("delete", "openai", "--json") == 1


def test_a_key_that_something_else_overrides_is_said_to_be(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert desk.run("set", "openai", "--json", stdin=KEY) == 0
    assert desk.lines == [{"type": "result", "provider": "openai", "keyring": f"{__name__}.Kept"}]
    assert desk.err.getvalue() == "agentls: OPENAI_API_KEY counts before the keyring.\n"


def test_the_list_names_places_in_the_order_in_which_they_count(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = desk.home / "agentls" / "config.toml"
    config.parent.mkdir()
    config.write_text(f"[llm.openai]\napi_key = '{KEY}'\n[llm.groq]\napi_key = '{KEY}'\n")
    config.chmod(0o600)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    desk.kept.keys = {"openai": KEY, "deepseek": KEY}
    assert desk.run("list", "--json") == 0
    *found, result = desk.lines
    assert result == {"type": "result", "problems": []}
    sources = {line["provider"]: line["sources"] for line in found if isinstance(line, dict)}
    variable = {"kind": "environment", "where": "OPENAI_API_KEY"}
    file, keyring = {"kind": "file", "where": str(config)}, {"kind": "keyring", "where": ""}
    expected = {"openai": [variable, file, keyring], "groq": [file], "deepseek": [keyring]}
    assert sources == {name: expected.get(name, []) for name in sources}
    assert desk.run("list") == 0
    assert set(expected) <= set(sources)
    rows = [line.split(maxsplit=1) for line in desk.out.getvalue().rstrip("\n").split("\n")]
    assert rows[0] == ["PROVIDER", "KEY FROM"]
    assert ["openai", f"OPENAI_API_KEY, {config}, the keyring"] in rows
    assert ["deepseek", "the keyring"] in rows


def test_a_file_that_others_can_read_counts_as_none(desk: Desk) -> None:
    config = desk.home / "agentls" / "config.toml"
    config.parent.mkdir()
    config.write_text(f"[llm.openai]\napi_key = '{KEY}'\n")
    config.chmod(0o644)
    assert desk.run("list") == 0
    assert ["openai", "none"] in [line.split() for line in desk.out.getvalue().split("\n")]
    assert f"Run `chmod 600 {config}`" in desk.err.getvalue()


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["key", "set", "openai"], Arguments("key set", name="openai")),
        (["key", "--json", "list"], Arguments("key list", json=True)),
        (["key", "delete", "groq", "-v"], Arguments("key delete", name="groq", verbose=1)),
    ],
)
def test_what_is_understood(argv: list[str], expected: Arguments) -> None:
    assert parse(argv) == expected


@pytest.mark.parametrize(
    "argv",
    [
        ["key"],
        ["key", KEY],
        ["key", "0123456789abcdef"],
        ["key", "set"],
        ["key", "set", "openai", KEY],
        ["key", "set", "openai", f"--key={KEY}"],
        ["key", "set", f"--api-key={KEY}", "openai"],
        ["key", "list", KEY],
        ["key", "delete", "openai", KEY],
        [f"--api-key={KEY}", "key", "list"],
        [KEY],
    ],
    ids=str,
)
def test_a_key_on_the_command_line_is_wrong_usage_and_not_repeated(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(argv)
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert "error:" in err
    assert "0123456789abcdef" not in err
