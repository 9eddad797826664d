from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from agentls.cli.listening import listening_ports

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

_LISTENER = """
import socket, sys
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
sys.stdin.read()
"""


def test_own_ports_are_found_and_clients_are_not() -> None:
    before = listening_ports(os.getpid())
    assert before is not None
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            assert listening_ports(os.getpid()) == before | {port}
    assert listening_ports(os.getpid()) == before


def test_ports_of_children_count() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _LISTENER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout is not None
        port = int(child.stdout.readline())
        found = listening_ports(os.getpid())
        assert found is not None
        assert port in found
