"""The environment of commands: the user's, without secrets or ways into the editor. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_SECRET_NAME = re.compile(
    r"(KEY|KEYS|KEY_ID|TOKEN|TOKENS|SECRET|SECRETS|PASSWORD|PASSWORDS|PASSWD|PASSPHRASE|PASS|_PWD|_PAT"
    r"|CREDENTIAL|CREDENTIALS|COOKIE|COOKIES|BEARER|AUTH|AUTH_HEADER|PRIVATE)(_|\d|$)",
    re.IGNORECASE,
)
_NOT_SECRET = frozenset({"SSH_AUTH_SOCK"})
_SECRET_VALUE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@"
    r"|\b(sk-[\w-]{16}|gh[pousr]_\w{16}|github_pat_\w{16}|glpat-[\w-]{16}|xox[abprs]-[\w-]{8}"
    r"|AKIA[A-Z0-9]{12}|AIza[\w-]{30}|hf_\w{16}|npm_\w{16}|pypi-\w{16}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.)"
)
"""Private keys, passwords in URLs, and the usual prefixes of keys."""

_DROPPED = re.compile(
    # the product's own settings; sockets by which a command could drive the editor or a terminal
    r"AGENTLS_.*|VSCODE_.*|ELECTRON_.*|NVIM.*|VIM_SERVERNAME|EMACS_.*|TMUX.*|STY|KITTY_.*|WEZTERM_.*"
    # code that would run before the command
    r"|BASH_ENV|ENV|BASH_FUNC_.*|PROMPT_COMMAND|PS4|SHELLOPTS|BASHOPTS"
    # helpers that would ask someone
    r"|SSH_ASKPASS.*|SUDO_ASKPASS"
)
_SET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
}
"""Nothing asks, pages, or opens an editor: nobody could answer it."""


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What a command gets to see of `environ`.

    Relative places are taken out of PATH: they would be inside the workspace.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if not _DROPPED.fullmatch(name) and not _is_secret(name, value)
    }
    if "PATH" in kept:
        kept["PATH"] = os.pathsep.join(filter(os.path.isabs, kept["PATH"].split(os.pathsep)))
    return kept | _SET


def _is_secret(name: str, value: str) -> bool:
    if name in _NOT_SECRET:
        return False
    return bool(_SECRET_NAME.search(name) or _SECRET_VALUE.search(value))
