"""Keys in the system's keyring: looked up, stored, deleted, without ever holding anything up.

Owns the one way to the `keyring` library, which is imported only when a key is needed. Knows
nothing of where else keys come from: environment, editor and user file win, see `settings.py`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import hmac
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from pydantic import SecretStr

from agentls.core.errors import SettingsError

SERVICE = "agentls"
"""Under this name, with the provider as the user, a key is in the keyring."""

FIND_S = 5.0
_STORE_S = 120.0
"""A person may have to type the keyring's password first."""

T = TypeVar("T")


class Backend(Protocol):
    """What is used of `keyring.backend.KeyringBackend`."""

    def get_password(self, service: str, username: str) -> str | bytes | None:
        """The secret, if there is one."""

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep a secret."""

    def delete_password(self, service: str, username: str) -> None:
        """Forget a secret."""


class SystemKeyring:
    """The keyring of this machine. What was found is kept for as long as this object.

    A keyring that is locked may wait for its password for ever. So every call runs in a thread that
    neither an exit nor the event loop waits for, and while one hangs no other is begun.
    """

    def __init__(self, backend: Callable[[], Backend] | None = None) -> None:
        """Nothing is loaded or asked yet. `backend` gives another one than the system's."""
        self._backend = backend or _system_backend
        self._asked: dict[str, concurrent.futures.Future[SecretStr | None]] = {}
        self._hanging: concurrent.futures.Future[SecretStr | None] | None = None
        self._problems: dict[str, str] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """Why keys could not be looked up, as sentences for people, each once."""
        return tuple(dict.fromkeys(self._problems.values()))

    async def find(self, provider: str, *, timeout_s: float = FIND_S) -> SecretStr | None:
        """The key of a provider; None if there is none, or it cannot be had within the time.

        Raises nothing: what went wrong is added to `problems`. A keyring that is unlocked later
        still answers the next call. Cancelling leaves the question open, like running out of time.
        """
        asking = self._asked.get(provider)
        if asking is None:
            if self._hanging is not None and not self._hanging.done():
                self._problems[provider] = _NO_ANSWER
                return None
            asking = self._asked[provider] = _in_thread(lambda: self._get(provider))
        if not await _finished(asking, timeout_s):
            self._hanging = asking
            self._problems[provider] = _NO_ANSWER
            return None
        self._problems.pop(provider, None)
        error = asking.exception()
        if error is None:
            return asking.result()
        self._problems[provider] = f"The system's keyring cannot be used: {_reason(error)}."
        return None

    def require(self) -> None:
        """See that there is a keyring at all, before a person is asked for a key.

        Raises:
            SettingsError: there is none.
        """
        try:
            self._backend()
        except Exception as error:  # backends raise whatever their systems do
            raise _unusable(error) from None

    async def store(self, provider: str, key: SecretStr) -> str:
        """Keep the key of a provider, in place of an older one; gives the keyring's name.

        Raises:
            SettingsError: there is no keyring, or it refused, or did not keep the key.
        """
        name = await self._change(lambda: self._set(provider, key.get_secret_value()))
        self._forget(provider)
        return name

    async def delete(self, provider: str) -> bool:
        """Delete the key of a provider; whether there was one.

        Raises:
            SettingsError: there is no keyring, or it refused.
        """
        there = await self._change(lambda: self._delete(provider))
        self._forget(provider)
        return there

    def _get(self, provider: str) -> SecretStr | None:
        key = _text(self._backend().get_password(SERVICE, provider)).strip()
        return SecretStr(key) if key else None

    def _set(self, provider: str, key: str) -> str:
        backend = self._backend()
        backend.set_password(SERVICE, provider, key)
        # One that is switched off takes everything and keeps nothing.
        kept = _text(backend.get_password(SERVICE, provider))
        if not hmac.compare_digest(kept.encode(), key.encode()):
            raise _NotKept
        return f"{type(backend).__module__}.{type(backend).__qualname__}"

    def _delete(self, provider: str) -> bool:
        backend = self._backend()
        if backend.get_password(SERVICE, provider) is None:
            return False
        backend.delete_password(SERVICE, provider)
        return True

    async def _change(self, act: Callable[[], T]) -> T:
        acting = _in_thread(act)
        if not await _finished(acting, _STORE_S):
            raise SettingsError(_NO_ANSWER, hint="Unlock it and try again.")
        error = acting.exception()
        if error is not None:
            raise _unusable(error) from None
        return acting.result()

    def _forget(self, provider: str) -> None:
        self._asked.pop(provider, None)
        self._problems.pop(provider, None)


def _unusable(error: BaseException) -> SettingsError:
    return SettingsError(
        f"The system's keyring cannot be used: {_reason(error)}.",
        hint="Keep the key in the provider's environment variable, such as OPENAI_API_KEY, or as "
        "api_key of the provider in your settings file, with mode 600.",
    )


class _NotKept(Exception):
    """The keyring took a key and has it not."""


_NO_ANSWER = "The system's keyring did not answer in time; it may be locked."


def _text(found: str | bytes | None) -> str:
    """What a keyring gave; some give bytes, whatever the library says."""
    return found.decode() if isinstance(found, bytes) else found or ""


def _system_backend() -> Backend:
    # Only here: it takes longer to import than all of a start, and may not work at all.
    import keyring
    from keyring.backends import fail
    from keyring.errors import NoKeyringError

    found = keyring.get_keyring()
    if isinstance(found, fail.Keyring):  # the library's stand-in for none at all
        raise NoKeyringError
    backend: Backend = found
    return backend


def _reason(error: BaseException) -> str:
    """Why a keyring failed, for people. Its own words are not repeated: they may quote anything."""
    if isinstance(error, _NotKept):
        return "it did not keep the key"
    if isinstance(error, ImportError):
        return "a part of it is not installed"
    from keyring.errors import KeyringLocked, NoKeyringError, PasswordDeleteError, PasswordSetError

    match error:
        case NoKeyringError():
            return "this system has none"
        case KeyringLocked():
            return "it is locked and was not unlocked"
        case PasswordSetError() | PasswordDeleteError():
            return "it refused"
        case _:
            return f"it failed with {type(error).__name__}"


def _in_thread(act: Callable[[], T]) -> concurrent.futures.Future[T]:
    """Run in a thread that nobody has to wait for."""
    outcome: concurrent.futures.Future[T] = concurrent.futures.Future()

    def run() -> None:
        try:
            outcome.set_result(act())
        except BaseException as error:  # backends are foreign code: they may even exit
            outcome.set_exception(error)

    threading.Thread(target=run, name="agentls-keyring", daemon=True).start()
    return outcome


async def _finished(future: concurrent.futures.Future[T], timeout_s: float) -> bool:
    """Whether it is done within the time; it goes on if not, and when this is cancelled."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def tell(_: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is gone: nobody waits any more
            loop.call_soon_threadsafe(done.set)

    future.add_done_callback(tell)
    try:
        async with asyncio.timeout(timeout_s):
            await done.wait()
    except TimeoutError:
        return future.done()
    return True
