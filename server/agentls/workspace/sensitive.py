"""Which files hold secrets, and which run code or set the rules when they are written.

Pure: judges a path below its root by its names alone, whatever the case of the letters. Errs
towards asking once too often. What follows from it is for permissions to decide.
"""

from __future__ import annotations

from agentls.core.paths import is_git


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SECRET_NAMES = _words("""
    .netrc _netrc .npmrc .pypirc .yarnrc .git-credentials .pgpass .my.cnf .mylogin.cnf .htpasswd
    .dockercfg .dockerconfigjson .vault-token .s3cfg .boto .passwd-s3fs .terraformrc .authinfo
    .authinfo.gpg credentials credentials.json credentials.toml credentials.yml credentials.yaml
    credentials.tfrc.json application_default_credentials.json secrets.json secrets.toml
    secrets.yml secrets.yaml secrets.env secring.gpg
""")
_SECRET_PREFIXES = (".env", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519")
_SECRET_SUFFIXES = tuple(
    sorted(
        _words("""
    .pem .key .p12 .pfx .pkcs12 .p8 .jks .keystore .kdb .kdbx .ppk .agekey .tfstate
    .tfstate.backup .ovpn .keytab
""")
    )
)
_SECRET_JSON_PREFIXES = ("client_secret", "service-account", "service_account")
_SECRET_FOLDERS = _words("""
    .ssh .gnupg .aws .azure .gcloud .kube .oci .aliyun .bluemix .password-store .secrets
    .terraform.d
""")
_SECRET_PLACES = (
    "/.docker/config.json",
    "/.config/gcloud/",
    "/.config/gh/hosts.yml",
    "/.config/op/",
    "/.git/config",
    "/.env",
)

_PROTECTED_NAMES = _words("""
    .mcp.json mcp.json .nvim.lua .nvimrc .exrc .vimrc .gvimrc .lvimrc .envrc .dir-locals.el
    .dir-locals-2.el .tool-versions mise.toml .mise.toml .bashrc .bash_profile .bash_login
    .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .kshrc .cshrc .tcshrc
    .inputrc .tmux.conf .gitconfig .gitmodules .gitattributes .pre-commit-config.yaml
    .lefthook.yml lefthook.yml .yarnrc.yml .pnpmfile.cjs .npmrc .gitlab-ci.yml .travis.yml
    jenkinsfile .devcontainer.json agents.md agent.md agents.override.md claude.md
    claude.local.md gemini.md qwen.md copilot-instructions.md .cursorrules .cursorignore
    .windsurfrules .clinerules .roorules .goosehints .rules .aider.conf.yml .aiderignore
""")
_PROTECTED_SUFFIXES = (".code-workspace", ".sublime-project", ".instructions.md", ".mdc")
_PROTECTED_FOLDERS = _words("""
    .git .vscode .vscode-server .idea .fleet .run .zed .vim .nvim .agentls .claude .codex
    .cursor .windsurf .gemini .qwen .continue .cline .roo .kiro .junie .amazonq .opencode
    .devcontainer .husky .githooks .direnv .circleci .ssh .gnupg .aws .kube
""")
_PROTECTED_PLACES = (
    "/.github/workflows/",
    "/.github/actions/",
    "/.config/nvim/",
    "/.config/fish/",
    "/.config/git/",
    "/.config/systemd/",
    "/.config/autostart/",
    "/.local/bin/",
    "/agentls/config.toml",
)


def is_secret(path: str) -> bool:
    """Whether a file holds keys or passwords. `path` is relative, with forward slashes."""
    folded = f"/{path.lower()}"
    folders, _, name = folded.rpartition("/")
    return (
        name in _SECRET_NAMES
        or name.endswith(_SECRET_SUFFIXES)
        or name.startswith(_SECRET_PREFIXES)
        or (name.endswith(".json") and name.startswith(_SECRET_JSON_PREFIXES))
        or (name.startswith("id_") and "." not in name.removesuffix(".pub"))
        or not _SECRET_FOLDERS.isdisjoint(folders.split("/"))
        or any(place in folded for place in _SECRET_PLACES)
    )


def is_protected(path: str) -> bool:
    """Whether writing a file can run code later or loosen the rules. `path` is as above."""
    folded = f"/{path.lower()}"
    name = folded.rpartition("/")[2]
    return (
        name in _PROTECTED_NAMES
        or name.endswith(_PROTECTED_SUFFIXES)
        or not _PROTECTED_FOLDERS.isdisjoint(folded.split("/"))
        or any(place in folded for place in _PROTECTED_PLACES)
        or is_git(path)
    )


def secret_globs() -> tuple[str, ...]:
    """Globs, matching at any depth, for those secret files that a glob can tell from folders."""
    return (
        *sorted(_SECRET_FOLDERS),
        *sorted(name for name in _SECRET_NAMES if "." in name),
        *(f"{prefix}*" for prefix in _SECRET_PREFIXES),
        *(f"*{suffix}" for suffix in _SECRET_SUFFIXES),
        *(f"{prefix}*.json" for prefix in _SECRET_JSON_PREFIXES),
    )
