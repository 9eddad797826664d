"""The client: what it said about itself in `initialize`, and how it is asked for something."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from lsprotocol import types
from pygls.uris import to_fs_path

from agentls.lsp.positions import Encoding

_ENCODINGS = ("utf-8", "utf-16", "utf-32")
_MAX_PROCESS_ID = 2**31 - 1
_LOCAL = re.compile(r"file://(localhost)?/+", re.IGNORECASE)
_COUNT_LF_ONLY = re.compile(r"vim|emacs|eglot|helix|kakoune", re.IGNORECASE)
"""Editors that keep a carriage return as a character of its line, against LSP."""


class Asks(Protocol):
    """Sends requests to the client; see `AgentProtocol.ask`."""

    async def ask(self, method: str, params: object, *, timeout_s: float) -> object:
        """The client's result.

        Raises:
            RpcError: it answered with an error.
            TimeoutError: it did not answer in time.
        """


@dataclass(frozen=True, slots=True)
class Client:
    """Facts that do not change during a connection.

    `splits_at_cr` is whether a lone carriage return ends a line in its positions, as LSP says.
    `options` are the settings sent as `initializationOptions`, without what the client can do.
    """

    process_id: int | None = None
    encoding: Encoding = "utf-16"
    applies_edits: bool = False
    versioned_edits: bool = False
    asks_permission: bool = False
    splits_at_cr: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)


def describe(params: types.InitializeParams, capabilities: Mapping[str, Any]) -> Client:
    """Read what this server needs; `capabilities` are raw, and what does not fit counts as absent.

    They are not read by lsprotocol, so that an editor newer than it is no error, and because
    building all its capability types takes longer than everything else here.
    """
    workspace = _section(capabilities, "workspace")
    options = dict(_section({"options": params.initialization_options}, "options"))
    announced = options.pop("capabilities", None)
    permission = _section({"announced": announced}, "announced").get("permission")
    name = params.client_info.name if params.client_info else ""
    return Client(
        process_id=_process_id(params.process_id),
        encoding=_encoding(_section(capabilities, "general").get("positionEncodings")),
        applies_edits=workspace.get("applyEdit") is True,
        versioned_edits=_section(workspace, "workspaceEdit").get("documentChanges") is True,
        asks_permission=permission is True or isinstance(permission, dict),
        splits_at_cr=_COUNT_LF_ONLY.search(name) is None,
        options=options,
    )


def root_folders(params: types.InitializeParams) -> tuple[Path, ...]:
    """The folders the client opened, in its order, without those that are not on this machine."""
    if params.workspace_folders:
        return folders(folder.uri for folder in params.workspace_folders)
    if params.root_uri is not None:
        return folders([params.root_uri])
    path = params.root_path
    return (Path(path),) if path and "\0" not in path and Path(path).is_absolute() else ()


def folders(uris: Iterable[str]) -> tuple[Path, ...]:
    """Local paths of URIs."""
    return tuple(path for uri in uris if (path := path_of(uri)) is not None)


def path_of(uri: str) -> Path | None:
    """The local path a URI names; None for anything but an absolute `file:` path."""
    if not uri.lower().startswith("file:"):
        return None
    posix = sys.platform != "win32"
    path = to_fs_path(_LOCAL.sub("file:///", uri) if posix else uri)
    if path and path.startswith("//") and posix:
        # Another machine's: only Windows opens such a name there, others would take it as local.
        return None
    return Path(path) if path and "\0" not in path and Path(path).is_absolute() else None


def _process_id(number: int | None) -> int | None:
    """A number that can be a process's; anything else cannot be watched."""
    return number if number is not None and 0 < number <= _MAX_PROCESS_ID else None


def _encoding(offered: object) -> Encoding:
    """The client's first choice among those that exist; UTF-16 when it names none."""
    for name in offered if isinstance(offered, list) else ():
        if name in _ENCODINGS:
            return cast("Encoding", name)
    return "utf-16"


def _section(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    section = value.get(key)
    return section if isinstance(section, dict) else {}
