from __future__ import annotations

from pathlib import Path

import pytest

from agentls.llm.embedded.catalogue import CATALOGUE
from support.cli_process import Cli, closed_port


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    made = Cli.below(tmp_path)
    nowhere = f"http://127.0.0.1:{closed_port()}"
    made.environment |= {
        "HF_ENDPOINT": nowhere,
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": "/dev/null",
    }
    return made


def test_the_catalogue_is_a_table(cli: Cli) -> None:
    done = cli.run("model", "list")
    assert (done.code, done.err) == (0, "")
    head, *rows = done.out.split("\n\n")[0].split("\n")
    assert head.split() == ["NAME", "MODEL", "SIZE", "LICENCE", "TOOLS", "INSTALLED"]
    assert [row.split()[0] for row in rows] == list(CATALOGUE)
    assert all(row.endswith("no") for row in rows)


def test_what_is_installed_is_marked(cli: Cli) -> None:
    entry = next(iter(CATALOGUE.values()))
    path = cli.home / ".cache" / "agentls" / "models" / entry.file
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(entry.size_bytes)
    *models, result = cli.run("model", "list", "--json").lines
    assert [model["name"] for model in models] == list(CATALOGUE)
    assert [model["installed"] for model in models] == [True] + [False] * (len(CATALOGUE) - 1)
    assert models[0] == {
        "type": "model",
        "name": entry.name,
        "title": entry.title,
        "sizeBytes": entry.size_bytes,
        "licence": entry.licence,
        "toolCalling": entry.tool_calling,
        "contextTokens": entry.context_tokens,
        "installed": True,
        "path": str(path),
    }
    assert result == {"type": "result", "folder": str(path.parent)}
    assert f"✓ weights: {entry.name}" in cli.run("doctor").out


def test_an_unknown_model_is_an_error_that_names_the_known(cli: Cli) -> None:
    done = cli.run("model", "pull", "gpt\x1b[2J")
    assert (done.code, done.out) == (1, "")
    assert "\x1b" not in done.err
    assert all(name in done.err for name in CATALOGUE)


def test_no_network_is_an_error_and_nothing_gets_the_final_name(cli: Cli) -> None:
    entry = CATALOGUE["smollm2"]
    done = cli.run("model", "pull", entry.name)
    assert (done.code, done.out) == (1, "")
    assert "agentls: error: " in done.err
    assert "Traceback" not in done.err
    assert not (cli.home / ".cache" / "agentls" / "models" / entry.file).exists()
