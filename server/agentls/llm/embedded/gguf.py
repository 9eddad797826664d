"""Reads the few facts of a GGUF file that are needed before it is loaded.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Knows nothing of tensors.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from agentls.core.errors import SettingsError

_MAGIC = b"GGUF"
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_UNSIGNED = {0, 2, 4, 10}
_STRING, _ARRAY = 8, 9
_MAX_KEYS = 64
_MAX_STRING_BYTES = 64 * 1024
_HINT = "Give the path of a GGUF file, or a name from `agentls model list`."


@dataclass(frozen=True, slots=True)
class Facts:
    """`context_tokens` is what the model was trained for; None when the file does not say."""

    context_tokens: int | None = None


def read_facts(path: Path) -> Facts:
    """Look at the head of a file; the keys wanted come before the vocabulary.

    Raises:
        SettingsError: there is no such file, it cannot be read, or it is not GGUF.
    """
    try:
        if path.exists() and not path.is_file():  # reading a pipe would wait without end
            raise SettingsError(f"The weights {path} cannot be read: they are no file.", hint=_HINT)
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise SettingsError(
                    f"{path} is not a GGUF file.",
                    hint="The embedded model loads GGUF weights; `agentls model list` names some.",
                )
            return _facts(file)
    except OSError as error:
        raise SettingsError(
            f"The weights {path} cannot be read: {error.strerror or error}.",
            hint=_HINT,
        ) from error


def _facts(file: BinaryIO) -> Facts:
    try:
        _version, _tensors, keys = struct.unpack("<IQQ", _exactly(file, 20))
        for _ in range(min(keys, _MAX_KEYS)):
            name = _string(file)
            (kind,) = struct.unpack("<I", _exactly(file, 4))
            if kind == _STRING:
                _string(file)
            elif kind == _ARRAY:
                if not _skip_array(file):
                    break
            else:
                value = _exactly(file, _SIZES[kind])
                if name.endswith(b".context_length") and kind in _UNSIGNED:
                    return Facts(context_tokens=int.from_bytes(value, "little"))
    except (struct.error, KeyError, EOFError):
        pass  # damaged or of another version: loading it will tell
    return Facts()


def _skip_array(file: BinaryIO) -> bool:
    kind, count = struct.unpack("<IQ", _exactly(file, 12))
    if kind == _STRING and count <= _MAX_KEYS:
        for _ in range(count):
            _string(file)
        return True
    size = _SIZES.get(kind, 0) * count
    if not 0 < size <= _MAX_STRING_BYTES:
        return False
    _exactly(file, size)
    return True


def _string(file: BinaryIO) -> bytes:
    (length,) = struct.unpack("<Q", _exactly(file, 8))
    if length > _MAX_STRING_BYTES:
        raise EOFError
    return _exactly(file, length)


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise EOFError
    return data
