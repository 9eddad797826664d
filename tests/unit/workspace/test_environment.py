from __future__ import annotations

from agentls.workspace.environment import clean_environment

SECRET = {
    "OPENAI_API_KEY": "x",
    "ANTHROPIC_API_KEY": "x",
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "AWS_SESSION_TOKEN": "x",
    "GITHUB_TOKEN": "x",
    "DB_PASSWORD": "x",
    "DB_PASS": "x",
    "MYSQL_PWD": "x",
    "client_secret": "x",
    "NPM_TOKEN_2": "x",
    "apiKey": "x",
    "GOOGLE_APPLICATION_CREDENTIALS": "x",
    "DATABASE_URL": "postgres://user:hunter2@db/x",
    "HTTPS_PROXY": "http://user:hunter2@proxy:8080",
    "INNOCENT": "sk-abcdefghijklmnopqrstuv",
    "HARMLESS": "ghp_abcdefghijklmnopqrstuvwxyz",
    "PEM": "-----BEGIN RSA PRIVATE KEY-----",
}
CONTROL = {
    "AGENTLS_SCRIPT": "x",
    "AGENTLS_ANYTHING": "x",
    "NVIM": "/run/nvim.sock",
    "NVIM_LISTEN_ADDRESS": "/run/nvim.sock",
    "VSCODE_IPC_HOOK_CLI": "/run/vscode.sock",
    "TMUX": "/run/tmux,1,0",
    "BASH_ENV": "/w/evil",
    "ENV": "/w/evil",
    "BASH_FUNC_git%%": "() { evil; }",
    "SSH_ASKPASS": "/usr/bin/ask",
}
KEPT = {
    "PATH": "/usr/bin",
    "HOME": "/home/u",
    "LANG": "de_DE.UTF-8",
    "PWD": "/w",
    "OLDPWD": "/",
    "VIRTUAL_ENV": "/venv",
    "SSH_AUTH_SOCK": "/run/agent",
    "KEYBOARD": "de",
    "MANPATH": "/usr/share/man",
    "HTTP_PROXY": "http://proxy:8080",
}


def test_secrets_and_ways_into_the_editor_are_dropped() -> None:
    cleaned = clean_environment(SECRET | CONTROL | KEPT | {"TERM": "xterm", "PAGER": "less"})
    added = {
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
    assert cleaned == KEPT | added


def test_programs_are_not_looked_for_in_the_workspace() -> None:
    cleaned = clean_environment({"PATH": ".:/usr/bin::node_modules/.bin:/bin:"})
    assert cleaned["PATH"] == "/usr/bin:/bin"
    assert "PATH" not in clean_environment({})
