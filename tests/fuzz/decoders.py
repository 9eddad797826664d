"""Fuzzes decoders and readers: `python tests/fuzz/decoders.py -max_total_time=300 NEW CORPUS…`.

Takes libFuzzer's options. Inputs that reach new code are kept in the first folder; one that breaks
a promise is printed, written as a file, and ends the run with an error. Needs atheris, which has
wheels for CPython 3.11 to 3.13 on Linux.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main(argv: list[str]) -> None:
    """Run until the options or a finding end it."""
    atheris = importlib.import_module("atheris")
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    with atheris.instrument_imports(include=["agentls.llm"]):
        from fuzz import mutating, reading

    def mutate(data: bytes, max_bytes: int, seed: int) -> bytes:
        """Every other time change what frames say, for bytes alone seldom leave them readable."""
        if seed % 2:
            changed: bytes = atheris.Mutate(data, max_bytes)
            return changed
        head, stream = data[: reading.HEAD_BYTES], data[reading.HEAD_BYTES :]
        return (head + mutating.mutated(stream, seed))[:max_bytes]

    atheris.Setup(argv, reading.one_input, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
