"""What other processes of the same user get to see of one that holds keys. Run as no root."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli_process import until
from support.ordinary_user import OrdinaryUser, ordinary_user

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs prctl and /proc")

KEY = "sk-test-0123456789abcdef0123456789abcdef"

SPY = """
import json, sys
seen = {}
for name in ("environ", "mem", "maps", "fd"):
    place = f"/proc/{sys.argv[1]}/{name}"
    try:
        if name == "fd":
            import os
            os.listdir(place)
            seen[name] = "open"
        else:
            with open(place, "rb") as file:
                data = b"" if name == "mem" else file.read()
                seen[name] = "key" if sys.argv[2].encode() in data else "open"
    except PermissionError:
        seen[name] = "closed"
print(json.dumps(seen))
"""

HOLDER = """
import sys
print("started", flush=True)
sys.stdin.readline()
from agentls.hardening import forbid_inspection
print(forbid_inspection(), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def user() -> Iterator[OrdinaryUser]:
    with ordinary_user() as made:
        yield made


def spied(user: OrdinaryUser, pid: int) -> dict[str, str]:
    found: dict[str, str] = json.loads(user.run("-c", SPY, str(pid), KEY))
    return found


CLOSED = {"environ": "closed", "mem": "closed", "maps": "closed", "fd": "closed"}


def test_a_key_in_the_environment_is_readable_before_and_not_after(user: OrdinaryUser) -> None:
    with user.start("-c", HOLDER, OPENAI_API_KEY=KEY) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"started\n"
        assert spied(user, holder.pid) == {**dict.fromkeys(CLOSED, "open"), "environ": "key"}
        holder.stdin.write(b"\n")
        assert holder.stdout.readline() == b"True\n"
        assert spied(user, holder.pid) == CLOSED
        holder.stdin.write(b"\n")


@pytest.mark.parametrize("command", [["serve"], ["key", "set", "openai"], ["ask", "-"], []])
def test_every_command_closes_itself(user: OrdinaryUser, command: list[str]) -> None:
    (user.home / "w").mkdir(mode=0o755)
    arguments = ("-m", "agentls", "--workspace", str(user.home / "w"), *command)
    with user.start(*arguments, OPENAI_API_KEY=KEY, LLM_PROVIDER="scripted") as process:
        until(lambda: spied(user, process.pid) == CLOSED)
        process.kill()


def test_even_a_wrong_command_line_closes_first(user: OrdinaryUser) -> None:
    program = (
        "import ctypes\nfrom agentls.__main__ import main\n"
        "try: main(['--version'])\nexcept SystemExit: print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    )
    assert user.run("-c", program).split("\n")[1] == "0"


def test_no_core_file_is_left_and_commands_may_have_theirs(user: OrdinaryUser) -> None:
    program = (
        "import resource as r\nfrom agentls.hardening import forbid_inspection\n"
        "before = r.getrlimit(r.RLIMIT_CORE)\nforbid_inspection()\n"
        "print(r.getrlimit(r.RLIMIT_CORE) == (0, before[1]))"
    )
    assert user.run("-c", program) == "True\n"


def test_a_command_of_the_agent_reads_no_key_of_the_server(user: OrdinaryUser) -> None:
    program = f"""
import asyncio, os, sys
from pathlib import Path
from agentls.workspace.process import Subprocesses
if sys.argv[1] == "closed":
    from agentls.hardening import forbid_inspection
    forbid_inspection()
command = "cat /proc/$PPID/environ /proc/{{}}/environ; env".format(os.getpid())
result = asyncio.run(Subprocesses(Path.cwd()).run(command, timeout_s=20))
print("KEY" if {KEY!r} in result.output else "none", result.output.count("denied"))
"""
    assert user.run("-c", program, "open", OPENAI_API_KEY=KEY) == "KEY 0\n"
    assert user.run("-c", program, "closed", OPENAI_API_KEY=KEY) == "none 1\n"


# --- what must go on working -----------------------------------------------------------------


def test_doctor_sees_ports_and_searches_as_before(user: OrdinaryUser) -> None:
    script = user.write("script.jsonl", '{"text": "ready"}\n')
    arguments = ("-m", "agentls", "doctor", "--json")
    environment = {"LLM_PROVIDER": "scripted", "AGENTLS_SCRIPT": str(script)}
    with user.start(*arguments, **environment) as process:
        out, err = process.communicate(b"", 30)
    assert err == b""
    checks = [json.loads(line) for line in out.split(b"\n") if line][:-1]
    (ports,) = [check for check in checks if check["name"] == "listening ports"]
    assert (ports["state"], ports["detail"]) == ("ok", "none")
    (search,) = [check for check in checks if check["name"] == "search"]
    assert search["state"] == "ok"


LISTENING = """
import os, socket, subprocess, sys
from agentls.cli.listening import listening_ports
from agentls.hardening import forbid_inspection
assert forbid_inspection()
print(listening_ports(os.getpid()) == frozenset())
with socket.create_server(("127.0.0.1", 0)) as server:
    print(listening_ports(os.getpid()) == {server.getsockname()[1]})
child = '''
import socket, sys
from agentls.hardening import forbid_inspection
forbid_inspection()
server = socket.create_server(("127.0.0.1", 0)) if sys.argv[1] == "listens" else None
print("up", flush=True)
sys.stdin.read()
'''
for what in ("listens", "is silent"):
    with subprocess.Popen([sys.executable, "-c", child, what], stdin=-1, stdout=-1) as process:
        process.stdout.readline()
        print(listening_ports(os.getpid()))
        process.stdin.close()
"""


def test_own_ports_are_found_and_what_cannot_be_told_is_not_called_none(
    user: OrdinaryUser,
) -> None:
    said = user.run("-c", LISTENING).split("\n")
    assert said == ["True", "True", "None", "frozenset()", ""]


ENGINE = """
import ctypes, json, os
class Part:
    pass
class CommonParams:
    def __init__(self):
        self.model, self.cpuparams, self.cpuparams_batch = Part(), Part(), Part()
class Server:
    def __init__(self, params):
        with open(os.environ["HOME"] + "/seen.json", "w") as file:
            with open("/proc/self/oom_score_adj") as score:
                seen = [ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), score.read().strip()]
            json.dump([*seen, sorted(name for name in os.environ if "KEY" in name)], file)
"""


def test_the_worker_of_the_embedded_model_closes_itself_too(user: OrdinaryUser) -> None:
    user.write("engine/xllamacpp.py", ENGINE)
    program = """
import asyncio, os, sys
from pathlib import Path
from agentls.hardening import forbid_inspection
from agentls.llm.embedded.llama_process import LlamaProcess
async def main():
    process = await LlamaProcess.start(Path("/w.gguf"), model="m", context_tokens=512, threads=1)
    await process.stop()
forbid_inspection()
asyncio.run(main())
"""
    path = f"{user.home / 'engine'}:{user.environment['PYTHONPATH']}"
    user.run("-c", program, PYTHONPATH=path, OPENAI_API_KEY=KEY, TMPDIR=str(user.home))
    seen = json.loads(Path(user.home, "seen.json").read_text())
    assert seen == [0, "500", []]


def test_a_search_starts_in_an_open_folder_as_before(user: OrdinaryUser) -> None:
    user.write("w/a.txt", "the needle is here\n")
    program = """
import asyncio
from pathlib import Path
from agentls.hardening import forbid_inspection
from agentls.workspace.ripgrep import Ripgrep
from agentls.workspace.roots import Roots
forbid_inspection()
print(asyncio.run(Ripgrep(Roots(Path("w").resolve())).grep("needle")).matches[0].text)
"""
    assert "the needle is here" in user.run("-c", program)
