from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from agentls.settings import Loaded, ProviderSettings, Settings, load

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs file modes")

KEY = "sk-test-0123456789abcdef"
KEYS = f"""
[llm]
model = "m"
[llm.openai]
api_key = "{KEY}"
base_url = "https://me:hunter2@example.com/v1"
headers = {{ Authorization = "Bearer {KEY}", X-Auth-Token = "abc", X-Team = "a team of tools" }}
extra_body = {{ top_p = 0.5, api_key = "{KEY}", nested = [{{ token = "{KEY}" }}], user = "me" }}
[llm.groq]
api_key = "gsk_0123456789abcdef"
base_url = "https://example.com/v1?key=0123456789abcdef"
[llm.deepseek]
base_url = "https://example.com/v1"
model = "hf_model"
"""


def written(tmp_path: Path, mode: int, text: str = KEYS) -> Path:
    path = tmp_path / "agentls" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(mode)
    return path


def loaded(tmp_path: Path, **environ: str) -> Loaded:
    return load(tmp_path / "ws", environ={"XDG_CONFIG_HOME": str(tmp_path), **environ})


WITHOUT = Settings.model_validate(
    {
        "llm": {
            "model": "m",
            "openai": {
                "base_url": "https://example.com/v1",
                "headers": {"X-Team": "a team of tools"},
                "extra_body": {"top_p": 0.5, "user": "me"},
            },
            "groq": {"base_url": "https://example.com/v1"},
            "deepseek": {"base_url": "https://example.com/v1", "model": "hf_model"},
        }
    }
)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_file_that_others_cannot_see_is_used_whole(tmp_path: Path, mode: int) -> None:
    written(tmp_path, mode)
    found = loaded(tmp_path)
    assert found.problems == ()
    assert found.settings.llm.openai == ProviderSettings(
        api_key=SecretStr(KEY),
        base_url="https://me:hunter2@example.com/v1",
        headers={
            "Authorization": f"Bearer {KEY}",
            "X-Auth-Token": "abc",
            "X-Team": "a team of tools",
        },
        extra_body={"top_p": 0.5, "api_key": KEY, "nested": [{"token": KEY}], "user": "me"},
    )


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (0o644, "others can read the file (mode 0644)"),
        (0o640, "others can read the file (mode 0640)"),
        (0o604, "others can read the file (mode 0604)"),
        (0o620, "others can change the file (mode 0620)"),
        (0o664, "others can read and change the file (mode 0664)"),
    ],
)
def test_keys_in_a_file_that_others_can_see_are_not_used_and_the_rest_is(
    tmp_path: Path, mode: int, said: str
) -> None:
    path = written(tmp_path, mode)
    found = loaded(tmp_path)
    assert found.settings == WITHOUT
    assert found.problems == (
        f"{path}: llm.openai.api_key, llm.openai.base_url, llm.openai.headers.Authorization, "
        "llm.openai.headers.X-Auth-Token, llm.openai.extra_body.api_key, "
        "llm.openai.extra_body.nested, llm.groq.api_key, llm.groq.base_url were not used: "
        f"{said}. Run `chmod 600 {path}`.",
    )


def test_a_key_from_elsewhere_still_counts(tmp_path: Path) -> None:
    path = written(tmp_path, 0o644, f"[llm.openai]\napi_key = '{KEY}'\n")
    found = loaded(tmp_path, OPENAI_API_KEY="sk-other")
    assert found.settings.llm.openai.api_key == SecretStr("sk-other")
    assert found.problems == (
        f"{path}: llm.openai.api_key was not used: others can read the file (mode 0644). "
        f"Run `chmod 600 {path}`.",
    )


@pytest.mark.parametrize(
    "text",
    [
        "[llm]\nprovider = 'openai'\nmax_tokens = 5\n[permissions]\ndeny = ['bash(curl -H key=*)']",
        "[llm.openai]\nheaders = { X-Team = 'tools' }\nextra_body = { prompt_cache_key = 'a' }",
        "[llm.openai]\napi_key = ''\n",
        "llm = 5",
    ],
)
def test_a_file_without_keys_may_be_seen_by_all(tmp_path: Path, text: str) -> None:
    written(tmp_path, 0o600, text)
    private = loaded(tmp_path)
    written(tmp_path, 0o664, text)
    assert loaded(tmp_path) == private


def test_of_a_link_the_file_it_leads_to_counts(tmp_path: Path) -> None:
    real = written(tmp_path, 0o644)
    moved = real.rename(tmp_path / "dotfiles.toml")
    real.symlink_to(moved)
    assert loaded(tmp_path).settings == WITHOUT
    moved.chmod(0o600)
    assert loaded(tmp_path).problems == ()


def test_what_was_opened_is_checked_and_not_what_the_name_leads_to_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, 0o644)
    opened = os.open

    def swapped(place: str | os.PathLike[str], *arguments: int, **more: int) -> int:
        descriptor = opened(place, *arguments, **more)
        if place == path:
            path.unlink()
            written(tmp_path, 0o600)
        return descriptor

    monkeypatch.setattr("os.open", swapped)
    assert loaded(tmp_path).settings == WITHOUT


def test_nothing_counts_of_a_file_that_anybody_may_have_written(tmp_path: Path) -> None:
    for mode in (0o602, 0o666):
        path = written(tmp_path, mode, "[permissions]\nallow = ['bash(rm *)']\n")
        assert loaded(tmp_path) == Loaded(
            Settings(),
            (
                f"{path} was ignored: anybody can change it (mode {mode:04o}); "
                f"run `chmod 600 {path}`.",
            ),
        )


def test_nothing_counts_of_a_file_of_somebody_else(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: only root can give a file away")
    path = written(tmp_path, 0o600)
    os.chown(path, 12345, 12345)
    assert loaded(tmp_path) == Loaded(
        Settings(),
        (f"{path} was ignored: it belongs to another user (uid 12345); make it your own.",),
    )


def test_a_pipe_or_device_blocks_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, 0o600)
    path.unlink()
    os.mkfifo(path)
    assert loaded(tmp_path) == Loaded(Settings(), (f"{path} was ignored: it is no ordinary file.",))
    path.unlink()
    path.symlink_to("/dev/zero")
    assert loaded(tmp_path).problems == (f"{path} was ignored: it is no ordinary file.",)


def test_a_name_that_a_shell_would_take_apart_is_quoted(tmp_path: Path) -> None:
    folder = tmp_path / "a b;c"
    folder.mkdir()
    path = written(folder, 0o644)
    (problem,) = loaded(folder).problems
    assert problem.endswith(f"Run `chmod 600 '{path}'`.")
    assert KEY not in problem
