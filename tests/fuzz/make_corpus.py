"""Writes the seeds of the fuzzer out of the replies that tests know: one folder a target."""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
_LONGEST = 8192


def seeds() -> dict[Path, bytes]:
    """Every seed by its path below the corpus."""
    from fuzz.reading import headed
    from support.wires.all_wires import WIRES, recorded

    found: dict[Path, bytes] = {}
    for number, wire in enumerate(WIRES):
        made = {
            "said": wire.said("a", "ü😀"),
            "called": wire.called(("c1", "f", {"a": "ü"}), ("c2", "g", {})),
            "thought": wire.thought("hm", "so"),
            "cut call": wire.cut_call("f", '{"a": "b'),
            "error": wire.frames(wire.said("a"))[0] + wire.error("busy"),
        }
        framing = "ndjson" if "ndjson" in wire.content_type else "sse"
        for name, stream in (recorded(wire) | made).items():
            if len(stream) > _LONGEST:
                continue
            file = re.sub(r"\W+", "-", name).strip("-") + ".bin"
            found[Path(wire.name, file)] = headed(wire.name, stream, number)
            if name in made:
                found[Path(framing, f"{wire.name}-{file}")] = headed(framing, stream, number)
    return found


def main() -> None:
    """Bring the corpus up to date."""
    sys.path.insert(0, str(HERE.parent))
    corpus = HERE / "corpus"
    wanted = seeds()
    for path in corpus.rglob("*.bin"):
        if path.relative_to(corpus) not in wanted:
            path.unlink()
    for name, data in wanted.items():
        (corpus / name).parent.mkdir(parents=True, exist_ok=True)
        (corpus / name).write_bytes(data)


if __name__ == "__main__":
    main()
