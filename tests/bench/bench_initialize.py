"""Spawn to `initialize` answered: `agentls serve` against a bare pygls server.

Both are started in turns, so that whatever else the machine does meets both. Prints one JSON
object; the target is a ratio of at most 1.15.

    python tests/bench initialize
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

BARE = """
from pygls.lsp.server import LanguageServer
LanguageServer("bare", "1").start_io()
"""
TARGET_RATIO = 1.15
ROUNDS = 12

# A part of what editors announce.
CAPABILITIES = {
    "general": {"positionEncodings": ["utf-8", "utf-16"]},
    "textDocument": {
        "synchronization": {"didSave": True, "dynamicRegistration": False},
        "completion": {
            "completionItem": {"snippetSupport": True, "resolveSupport": {"properties": []}}
        },
        "codeAction": {"isPreferredSupport": True, "dynamicRegistration": True},
        "hover": {"contentFormat": ["markdown", "plaintext"]},
    },
    "workspace": {
        "applyEdit": True,
        "configuration": True,
        "workspaceEdit": {"documentChanges": True, "resourceOperations": ["create"]},
        "workspaceFolders": True,
    },
    "window": {"workDoneProgress": True, "showMessage": {}},
}


def measure(command: Sequence[str], workspace: Path) -> tuple[float, float]:
    """Milliseconds from spawn to the answer, and the process's resident megabytes then."""
    folder = {"uri": workspace.as_uri(), "name": "w"}
    params = {"processId": os.getpid(), "rootUri": None, "workspaceFolders": [folder]}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    body = json.dumps({**message, "params": {**params, "capabilities": CAPABILITIES}}).encode()
    start = time.perf_counter()
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=workspace,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        process.stdin.flush()
        length = int(process.stdout.readline().split(b":")[1])
        while process.stdout.readline().strip():
            pass
        answer = json.loads(process.stdout.read(length))
        elapsed_ms = (time.perf_counter() - start) * 1000
        assert "capabilities" in answer["result"], answer
        resident = resident_mb(process.pid)
        process.kill()
    return elapsed_ms, resident


def resident_mb(pid: int) -> float:
    """Resident memory, where the system tells."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().split("\n") if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


def main() -> None:
    """Measure in turns and print medians."""
    rounds = ROUNDS
    ours, bare = [sys.executable, "-m", "agentls", "serve"], [sys.executable, "-c", BARE]
    results: dict[str, list[tuple[float, float]]] = {"agentls": [], "bare": []}
    with tempfile.TemporaryDirectory() as folder:
        for command in (ours, bare):
            measure(command, Path(folder))  # compiled files and the page cache
        for _ in range(rounds):
            results["agentls"].append(measure(ours, Path(folder)))
            results["bare"].append(measure(bare, Path(folder)))
    ms = {name: statistics.median(each[0] for each in found) for name, found in results.items()}
    rss = {name: statistics.median(each[1] for each in found) for name, found in results.items()}
    print(
        json.dumps(
            {
                "benchmark": "initialize",
                "rounds": rounds,
                "agentls_ms": round(ms["agentls"], 1),
                "bare_pygls_ms": round(ms["bare"], 1),
                "ratio": round(ms["agentls"] / ms["bare"], 3),
                "target_ratio": TARGET_RATIO,
                "agentls_rss_mb": round(rss["agentls"], 1),
                "bare_pygls_rss_mb": round(rss["bare"], 1),
            }
        )
    )


if __name__ == "__main__":
    main()
