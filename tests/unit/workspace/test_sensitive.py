from __future__ import annotations

import pytest

from agentls.core.paths import is_git
from agentls.workspace.globs import compile_glob
from agentls.workspace.sensitive import is_protected, is_secret, secret_globs


def words(text: str) -> list[str]:
    return text.split()


SECRETS = words("""
.env .env.local app/.env.production .ENV .envrc server.pem certs/Server.PEM id_rsa id_ed25519
id_rsa.pub id_work ssh/id_github.pub .netrc _netrc .npmrc .pypirc .git-credentials .pgpass
.aws/credentials home/.aws/config .azure/token.json .kube/config .ssh/config .config/gcloud/x.db
.docker/config.json secrets.yml config/credentials.json key.p12 store.jks terraform.tfstate
client_secret_1.json service-account-x.json .git/config .env/bin/activate .config/gh/hosts.yml
""")
NOT_SECRETS = words("""
README.md src/environment.py env.py id_utils.py identity.py src/id_generator.ts keys.py
credentials.py google/auth/credentials/__init__.py service_account.py .dockerignore
.docker/Dockerfile tokenizer.json secretary.txt package.json .gitignore .github/workflows/ci.yml
""")


def test_secrets_are_recognised() -> None:
    assert [path for path in SECRETS if not is_secret(path)] == []
    assert [path for path in NOT_SECRETS if is_secret(path)] == []


PROTECTED = words("""
.vscode/settings.json .vscode/tasks.json sub/.vscode/launch.json .VSCode/Settings.json
my.code-workspace .idea/workspace.xml .mcp.json .nvim.lua .exrc .envrc AGENTS.md sub/AGENTS.md
CLAUDE.md GEMINI.md .cursorrules .cursor/rules/x.mdc .github/copilot-instructions.md
.agentls/config.toml .agentls/anything .config/agentls/config.toml .devcontainer/devcontainer.json
.husky/pre-commit .pre-commit-config.yaml .github/workflows/ci.yml .bashrc .profile .gitconfig
.gitattributes .gitmodules .git/hooks/pre-commit .git .ssh/authorized_keys .zed/tasks.json
""")
NOT_PROTECTED = words("""
README.md src/main.py .gitignore docs/agents.txt vscode/settings.json settings.json tasks.json
server/agentls/settings.py .github/CODEOWNERS .editorconfig agentls/core/ports.py
""")


def test_files_that_run_code_or_loosen_rules_are_protected() -> None:
    assert [path for path in PROTECTED if not is_protected(path)] == []
    assert [path for path in NOT_PROTECTED if is_protected(path)] == []


@pytest.mark.parametrize(
    "path",
    [
        ".git",
        ".GIT",
        "a/.Git/config",
        ".git ",
        ".git.",
        ".git::$INDEX_ALLOCATION",
        "git~1/x",
        ".g\u200cit/config",
        ".gi\u2060t",
    ],
)
def test_every_spelling_of_git_is_gits(path: str) -> None:
    assert is_git(path)
    assert is_protected(path)


@pytest.mark.parametrize("path", [".gitignore", "git", ".github/x", "x.git/config", "a/git~10"])
def test_other_names_are_not(path: str) -> None:
    assert not is_git(path)


def test_globs_name_only_secrets() -> None:
    matches = [compile_glob(glob) for glob in secret_globs()]
    named = [path for path in SECRETS if any(match(path.lower()) for match in matches)]
    assert len(named) > len(SECRETS) / 2
    assert [path for path in NOT_SECRETS if any(match(path.lower()) for match in matches)] == []
