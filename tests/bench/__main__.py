"""Runs every measurement in this folder and prints one JSON object a line: `python tests/bench`.

Each prints figures and, where there is a raw reference, the ratio to it in the same run. Name some
to run only those: `python tests/bench initialize sse`.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def main(wanted: list[str]) -> None:
    """Run the benchmarks whose names are wanted, or all."""
    folder = Path(__file__).resolve().parent
    sys.path.insert(0, str(folder.parent))
    for path in sorted(folder.glob("bench_*.py")):
        name = path.stem.removeprefix("bench_")
        if wanted and name not in wanted:
            continue
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        print(f"# {name}", flush=True)
        module.main()


if __name__ == "__main__":
    main(sys.argv[1:])
