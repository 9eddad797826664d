"""Resolves every dependency, those of the index included, into `constraints.txt`.

Run it by `make constraints` to move to newer versions. All of it is resolved together so that parts
added to an environment later do not move what is there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HEADER = """\
# Every version of a tested environment, resolved together by `make constraints`; do not edit.
# torch is pinned to a release with a small CPU build for pip.
"""
TOGETHER = (
    "torch==2.13.0",
    "sentence-transformers>=6.2",
    "lancedb>=0.40",
    "watchfiles>=1.3",
    "pip",
)


def main() -> None:
    """Resolve and write."""
    root = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"]
        command += [
            "--quiet",
            "--report",
            str(report),
            *TOGETHER,
            "--editable",
            f"{root}[local,dev]",
        ]
        subprocess.run(command, check=True)  # noqa: S603 - our own interpreter, fixed arguments
        installed = json.loads(report.read_text("utf-8"))["install"]
    pins = sorted(
        f"{item['metadata']['name'].lower()}=={item['metadata']['version'].partition('+')[0]}"
        for item in installed
        if item["metadata"]["name"] != "agentls"
    )
    (root / "constraints.txt").write_text(HEADER + "\n".join(pins) + "\n", "utf-8")


if __name__ == "__main__":
    main()
