"""The keys that seal what a question carries from one round to the next (bridge.md §4.4).

A text file with one key per line; the first one seals, every one opens. It is read anew for each round, so that keys are
rotated by writing the file. Bridges and daemons of one user share it, and finish each other's rounds. Everything here
blocks, making the file for up to LOCK_TIMEOUT: call it in a thread.
"""

import errno
import os
import secrets
import stat

from pursersd import files
from pursersd.errors import KeyringError
from pursersd.rules.bridge_files import KEYS_VARIABLE
from pursersd.state.lock import held

SHORTEST = 32
"""Bytes that a key must have."""

FILE_LIMIT = 65536
LOCK_TIMEOUT = 5.0
"""Seconds that making the file waits for another program that is at it."""


class Keyring:
    """The file at this path, which is made when it is first needed."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"<Keyring {self.path}>"

    def load(self) -> list[bytes]:
        """The keys, the sealing one first, each once. Raises KeyringError with the bridge's text, the path and what to do."""
        try:
            raw = self._read()
        except FileNotFoundError:
            self._make()
            raw = self._read_made()
        keys = list(dict.fromkeys(line.strip() for line in raw.splitlines() if line.strip()))
        if not keys:
            raise self._unusable(
                "request-state key file must contain at least one key", "Remove it; it is made anew when it is needed."
            )
        if any(len(key) < SHORTEST for key in keys):
            raise self._unusable(
                f"every request-state key must contain at least {SHORTEST} bytes", "Make longer ones, one per line."
            )
        return keys

    def _read(self) -> bytes:
        """Raises FileNotFoundError, and KeyringError for everything else."""
        try:
            with files.opened(self.path, flags=os.O_NOFOLLOW) as file:
                if stat.S_IMODE(os.fstat(file.fileno()).st_mode) != 0o600:
                    raise self._unusable(
                        "request-state key file permissions must be 0600", f"Correct them with: chmod 600 {self.path}"
                    )
                return file.read(FILE_LIMIT)
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ELOOP, errno.EMLINK):
                raise self._irregular() from error
            raise self._unreadable(error) from error

    def _read_made(self) -> bytes:
        try:
            return self._read()
        except FileNotFoundError as error:
            raise self._unreadable(error) from error

    def _make(self) -> None:
        """Make the file with one key, unless another program does so at this moment: complete, or not at all."""
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            with held(f"{self.path}.lock", LOCK_TIMEOUT):
                if not os.path.lexists(self.path):
                    files.replace(self.path, secrets.token_urlsafe(SHORTEST).encode() + b"\n")
        except OSError as error:
            raise self._unusable(
                f"request-state key file cannot be made: {error.strerror or error}",
                f"Make its folder yours and writable, or name another file with {KEYS_VARIABLE}.",
            ) from error

    def _irregular(self) -> KeyringError:
        return self._unusable(
            "request-state key path must be a regular file", f"Remove it, or name another file with {KEYS_VARIABLE}."
        )

    def _unreadable(self, error: OSError) -> KeyringError:
        return self._unusable(
            f"request-state key file is not readable ({error.strerror or error})", "Make it yours, with mode 0600."
        )

    def _unusable(self, text: str, action: str) -> KeyringError:
        return KeyringError(f"{text}: see {self.path}. {action}")
