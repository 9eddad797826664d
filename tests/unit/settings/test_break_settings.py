"""Settings files that do harm, or are merely written by another editor."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentls.settings import Loaded, Settings, load

DEEP = {
    "arrays": "a = " + "[" * 5000,
    "closed arrays": f"a = {'[' * 300}{']' * 300}",
    "tables": "[" + ".".join(["a"] * 3000) + "]\nx = 1\n",
    "inline tables": "a = " + "{a = " * 2000 + "1" + "}" * 2000,
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "ws" / ".agentls").mkdir(parents=True)
    (tmp_path / "cfg" / "agentls").mkdir(parents=True)
    return tmp_path / "ws"


def own_file(workspace: Path) -> Path:
    return workspace / ".agentls" / "config.toml"


def user_file(workspace: Path) -> Path:
    return workspace.parent / "cfg" / "agentls" / "config.toml"


def loaded(workspace: Path, **sources: dict[str, object]) -> Loaded:
    environ = {"XDG_CONFIG_HOME": str(workspace.parent / "cfg")}
    return load(workspace, environ=environ, **sources)


@pytest.mark.parametrize("place", [own_file, user_file])
@pytest.mark.parametrize("kind", DEEP)
def test_a_file_nested_too_deeply_is_reported(workspace: Path, place: object, kind: str) -> None:
    assert callable(place)
    place(workspace).write_text(DEEP[kind])
    found = loaded(workspace)
    assert found == Loaded(
        Settings(), (f"{place(workspace)} was ignored: it is nested too deeply.",)
    )


def test_options_nested_too_deeply_are_reported(workspace: Path) -> None:
    options: dict[str, object] = {}
    for _ in range(500):
        options = {"llm": options}
    assert loaded(workspace, client_options=options).problems == (
        "the editor's options were ignored: they are nested too deeply.",
    )


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/stdin", "/proc/self/environ"])
def test_a_workspace_file_that_leads_outside_is_not_opened(workspace: Path, device: str) -> None:
    own_file(workspace).symlink_to(device)
    (problem,) = loaded(workspace).problems
    assert "outside the workspace" in problem


def test_a_workspace_file_that_is_a_pipe_does_not_block(workspace: Path) -> None:
    os.mkfifo(own_file(workspace))
    (problem,) = loaded(workspace).problems
    assert "is a device, pipe or socket" in problem


def test_a_workspace_folder_that_leads_outside_is_not_followed(
    workspace: Path, tmp_path: Path
) -> None:
    own_file(workspace).parent.rmdir()
    own_file(workspace).parent.symlink_to(tmp_path / "cfg" / "agentls")
    user_file(workspace).write_text("password = 'hunter2'\n")
    problems = loaded(workspace).problems
    assert any("outside the workspace" in problem for problem in problems)
    assert "hunter2" not in str(problems)


def test_a_workspace_file_that_is_a_link_inside_works(workspace: Path) -> None:
    (workspace / "rules.toml").write_text("[permissions]\ndeny = ['bash']\n")
    own_file(workspace).symlink_to("../rules.toml")
    assert loaded(workspace).settings.permissions.deny == ("bash",)


@pytest.mark.parametrize("place", [own_file, user_file])
def test_a_byte_order_mark_is_no_part_of_the_file(workspace: Path, place: object) -> None:
    assert callable(place)
    place(workspace).write_bytes(b"\xef\xbb\xbf[permissions]\r\ndeny = ['bash']\r\n")
    found = loaded(workspace)
    assert (found.settings.permissions.deny, found.problems) == (("bash",), ())


def test_a_workspace_does_not_take_a_single_rule_of_the_user_apart(workspace: Path) -> None:
    user_file(workspace).write_text("[permissions]\ndeny = 'bash'\nask = 'grep'\n")
    own_file(workspace).write_text("[permissions]\ndeny = ['glob']\nask = 'read_file'\n")
    found = loaded(workspace)
    permissions = found.settings.permissions
    assert (permissions.deny, permissions.ask) == (("bash", "glob"), ("grep", "read_file"))
    assert found.problems == ()


def test_one_bad_rule_of_a_workspace_does_not_take_the_others_with_it(workspace: Path) -> None:
    own_file(workspace).write_text("[permissions]\ndeny = ['bash', 5, ['x'], 'glob']\nask = 1\n")
    found = loaded(workspace)
    assert found.settings.permissions.deny == ("bash", "glob")
    assert [problem.split(": ")[1] for problem in found.problems] == [
        "permissions.deny.1 was ignored",
        "permissions.deny.2 was ignored",
        "permissions.ask.0 was ignored",
    ]


def test_a_body_that_json_cannot_hold_is_reported(workspace: Path) -> None:
    user_file(workspace).write_text(
        "[llm.openai]\nmodel = 'm'\nextra_body = { since = 2020-01-01, top_p = 0.5 }\n"
    )
    found = loaded(workspace)
    assert found.settings.llm.openai.extra_body == {"top_p": 0.5}
    (problem,) = found.problems
    assert "llm.openai.extra_body.since was ignored" in problem


def test_names_that_belong_to_a_provider_keep_their_letters(workspace: Path) -> None:
    provider = {
        "baseUrl": "http://x/v1",
        "headers": {"xTeam": "a"},
        "extraBody": {"topP": {"aB": 1}},
    }
    found = loaded(workspace, client_options={"llm": {"openai": provider}})
    openai = found.settings.llm.openai
    assert (openai.base_url, openai.headers, openai.extra_body) == (
        "http://x/v1",
        {"xTeam": "a"},
        {"topP": {"aB": 1}},
    )


def test_what_an_editor_sets_to_nothing_counts_as_not_set(workspace: Path) -> None:
    empty = {"apiKey": "", "model": " ", "baseUrl": None, "extraBody": {"a": None, "b": ""}}
    found = load(
        workspace,
        environ={
            "XDG_CONFIG_HOME": str(workspace.parent / "cfg"),
            "OPENAI_API_KEY": "a-key",
            "OPENAI_MODEL": "m",
            "LLM_PROVIDER": "openai",
        },
        client_options={"llm": {"provider": "", "pool": None, "openai": empty}},
    )
    assert found.problems == ()
    llm = found.settings.llm
    assert (llm.provider, llm.pool, llm.openai.model) == ("openai", (), "m")
    assert llm.openai.api_key is not None
    assert llm.openai.api_key.get_secret_value() == "a-key"
    assert llm.openai.extra_body == {"a": None, "b": ""}


@pytest.mark.parametrize("name", ["AUTO", " Auto "])
def test_auto_knows_no_case(workspace: Path, name: str) -> None:
    environ = {"XDG_CONFIG_HOME": str(workspace.parent / "cfg"), "LLM_PROVIDER": name}
    assert load(workspace, environ=environ).settings.llm.provider == "auto"
