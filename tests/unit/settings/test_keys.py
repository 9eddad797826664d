from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
from keyring.core import load_keyring
from keyring.errors import KeyringError, KeyringLocked, PasswordDeleteError, PasswordSetError
from pydantic import SecretStr

from agentls.core.errors import SettingsError
from agentls.keys import Backend, SystemKeyring

KEY = "sk-test-0123456789abcdef"


class Kept:
    """A keyring in memory, which counts how often it is asked."""

    def __init__(self, **keys: str) -> None:
        self.keys = {("agentls", name): key for name, key in keys.items()}
        self.asked: list[str] = []

    def get_password(self, service: str, username: str) -> str | None:
        self.asked.append(username)
        return self.keys.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.keys[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.keys[service, username]


class Broken(Kept):
    """A keyring where everything fails."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(openai=KEY)
        self.error = error

    def get_password(self, service: str, username: str) -> str | None:
        raise self.error

    def set_password(self, service: str, username: str, password: str) -> None:
        raise self.error

    def delete_password(self, service: str, username: str) -> None:
        raise self.error


class Locked(Kept):
    """A keyring that waits until somebody unlocks it."""

    def __init__(self, **keys: str) -> None:
        super().__init__(**keys)
        self.unlocked = threading.Event()

    def get_password(self, service: str, username: str) -> str | None:
        self.asked.append(username)
        self.unlocked.wait(60)
        return self.keys.get((service, username))


def made(backend: Backend) -> Callable[[], Backend]:
    return lambda: backend


async def test_a_key_is_found_once_and_shown_nowhere() -> None:
    backend = Kept(openai=f" {KEY}\n", groq=" ")
    system = SystemKeyring(made(backend))
    found = [await system.find(name) for name in ("openai", "groq", "gemini", "openai", "gemini")]
    assert found == [SecretStr(KEY), None, None, SecretStr(KEY), None]
    assert backend.asked == ["openai", "groq", "gemini"]
    assert system.problems == ()
    assert KEY not in repr(found) + repr(vars(system))


NONE = "The system's keyring cannot be used: this system has none."


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyringLocked(KEY), "it is locked and was not unlocked"),
        (KeyringError(KEY), "it failed with KeyringError"),
        (RuntimeError(KEY), "it failed with RuntimeError"),
        (ModuleNotFoundError(KEY), "a part of it is not installed"),
        (OSError(5, KEY), "it failed with OSError"),
        (SystemExit(3), "it failed with SystemExit"),
        (KeyboardInterrupt(), "it failed with KeyboardInterrupt"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
async def test_whatever_a_keyring_raises_is_a_problem_and_no_error(
    error: BaseException, said: str
) -> None:
    system = SystemKeyring(made(Broken(error)))
    assert [await system.find("openai"), await system.find("groq")] == [None, None]
    assert system.problems == (f"The system's keyring cannot be used: {said}.",)


async def test_a_system_without_a_keyring() -> None:
    system = SystemKeyring(made(load_keyring("keyring.backends.fail.Keyring")))
    assert await system.find("openai") is None
    assert system.problems == (NONE,)
    with pytest.raises(SettingsError, match="this system has none") as raised:
        await system.store("openai", SecretStr(KEY))
    assert "OPENAI_API_KEY" in raised.value.hint
    assert "600" in raised.value.hint


async def test_a_keyring_that_cannot_even_be_loaded() -> None:
    def load() -> Backend:
        raise AttributeError("module has no attribute Keyring")

    system = SystemKeyring(load)
    assert await system.find("openai") is None
    assert system.problems == (
        "The system's keyring cannot be used: it failed with AttributeError.",
    )


async def test_one_that_is_switched_off_has_nothing_and_keeps_nothing() -> None:
    system = SystemKeyring(made(load_keyring("keyring.backends.null.Keyring")))
    assert await system.find("openai") is None
    assert system.problems == ()
    with pytest.raises(SettingsError, match="it did not keep the key"):
        await system.store("openai", SecretStr(KEY))


async def test_a_locked_keyring_holds_nothing_up_and_answers_once_unlocked() -> None:
    backend = Locked(openai=KEY, groq="gsk-1")
    system = SystemKeyring(made(backend))
    assert await system.find("openai", timeout_s=0.01) is None
    # While that hangs nobody waits a second time, and nothing more is begun.
    async with asyncio.timeout(5):
        assert await system.find("groq", timeout_s=60) is None
    assert backend.asked == ["openai"]
    assert system.problems == ("The system's keyring did not answer in time; it may be locked.",)
    backend.unlocked.set()
    assert await system.find("openai") == SecretStr(KEY)
    assert await system.find("groq") == SecretStr("gsk-1")
    assert not system.problems
    assert backend.asked == ["openai", "groq"]


async def test_questions_at_the_same_time_do_not_get_in_each_others_way() -> None:
    system = SystemKeyring(made(Kept(openai=KEY, groq="gsk-1")))
    found = await asyncio.gather(*(system.find(name) for name in ("openai", "groq", "openai")))
    assert found == [SecretStr(KEY), SecretStr("gsk-1"), SecretStr(KEY)]
    assert system.problems == ()


async def test_cancelling_is_at_once() -> None:
    backend = Locked(openai=KEY)
    system = SystemKeyring(made(backend))
    asking = asyncio.create_task(system.find("openai", timeout_s=60))
    await asyncio.sleep(0)
    asking.cancel()
    async with asyncio.timeout(5):
        with pytest.raises(asyncio.CancelledError):
            await asking
    backend.unlocked.set()
    assert await system.find("openai") == SecretStr(KEY)


async def test_what_is_stored_is_found_and_what_is_deleted_is_not() -> None:
    backend = Kept()
    system = SystemKeyring(made(backend))
    assert await system.find("openai") is None
    assert await system.store("openai", SecretStr(KEY)) == f"{__name__}.Kept"
    assert await system.find("openai") == SecretStr(KEY)
    assert backend.keys == {("agentls", "openai"): KEY}
    assert await system.delete("openai")
    assert await system.find("openai") is None
    assert not await system.delete("openai")
    assert backend.keys == {}


@pytest.mark.parametrize("error", [PasswordSetError(KEY), PasswordDeleteError(KEY)])
async def test_a_refusal_is_said_without_what_the_keyring_says(error: KeyringError) -> None:
    system = SystemKeyring(made(Broken(error)))
    for act in (system.store("openai", SecretStr(KEY)), system.delete("openai")):
        with pytest.raises(SettingsError, match="it refused") as raised:
            await act
        assert KEY not in str(raised.value)
        assert raised.value.__cause__ is None


HANGING = """
import asyncio, threading, time
from agentls.keys import SystemKeyring
class Locked:
    def get_password(self, service, username):
        print("asked", flush=True)
        threading.Event().wait()
print(asyncio.run(SystemKeyring(Locked).find("openai", timeout_s=0.1)))
"""


def test_a_locked_keyring_does_not_hold_the_exit_up() -> None:
    ran = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, timeout=30)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"asked\nNone\n", b"")


def test_one_that_answers_after_the_loop_has_gone_is_not_heard_of() -> None:
    program = HANGING.replace("threading.Event().wait()", "time.sleep(0.3)")
    program += "time.sleep(0.6)\n"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=30)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"asked\nNone\n", b"")


def test_the_library_is_not_loaded_before_it_is_needed() -> None:
    program = "import sys, agentls.keys, agentls.settings\nprint('keyring' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ran.stdout == b"False\n"


async def test_a_keyring_that_gives_bytes_gives_a_key() -> None:
    class Bytes(Kept):
        def get_password(self, service: str, username: str) -> bytes | None:  # type: ignore[override]
            key = super().get_password(service, username)
            return None if key is None else key.encode()

    keyring = SystemKeyring(made(Bytes(openai=KEY)))
    assert await keyring.find("openai") == SecretStr(KEY)
    assert await keyring.find("groq") is None
    await keyring.store("groq", SecretStr(KEY))
    assert await keyring.find("groq") == SecretStr(KEY)
