"""The files of the local board's Central, made by its own programs: keys, tokens, data. All are 0600 below a 0700 folder."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import anyio

from pursers_shim.launch import daemon_environment
from pursersd.errors import LocalBoardError
from pursersd.local.files import replace
from pursersd.rules import local_board as rules
from pursersd.secret import Secret, blanked

COMMAND_TIMEOUT = 60.0
"""Seconds for one command; each makes a key and is done in one or two."""

DOOR_DAYS = 3650
"""How long a door is good: its Central is on this machine, and who reads the door's file could read the key as well."""

RENEW_BEFORE = 30 * 24 * 3600
"""Seconds before its end from which the owner's token is renewed: it is good for a year."""

PROGRAMS = ("pursers_central", "door_admin")
"""Modules of the packages that the extra `local` brings along."""


def require_installed() -> None:
    """Raise LocalBoardError, with the command that helps, unless the extra `local` is installed."""
    missing = [name for name in PROGRAMS if importlib.util.find_spec(name) is None]
    if not missing:
        return
    python = sys.executable
    pip = f"{python} -m pip install" if importlib.util.find_spec("pip") else f"uv pip install --python {python}"
    raise LocalBoardError(
        "A local board needs Pursers Central, which is not installed beside pursersd. "
        f"Install it with: {pip} 'pursersd[local]'",
        code="local_missing",
    )


class Instance:
    """One instance below `folder`, and the keys of its doors."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "instance"
        self._keys = folder / "keys"

    @property
    def is_made(self) -> bool:
        """Whether it can be started; its profile is written last."""
        return (self.root / "profile.env").exists()

    @property
    def owner(self) -> Secret:
        """The token of its owner, who may found boards. Raises LocalBoardError."""
        file = self.root / "admin.jwt"
        try:
            return Secret(file.read_text(encoding="ascii").strip())
        except (OSError, UnicodeDecodeError) as error:
            raise LocalBoardError(
                f"{file}, the key to the local board, cannot be read. Begin anew with: pursersctl local up --reset",
                code="local_damaged",
            ) from error

    async def prepare(self, board: str, port: int) -> None:
        """Make it unless it is made. What an interrupted attempt left is replaced; data are kept."""
        if not self.is_made:
            await _run("pursers_central", "init", str(self.root), "--port", str(port), "--board", board, "--force")

    async def renew(self) -> None:
        """Sign the owner's token anew; doors stay good."""
        await _run("pursers_central", "rotate-key", str(self.root))

    async def issue(self, board: str, role: str, port: int) -> str:
        """A door for a role: a string with a token in it."""
        where = ("--central-url", rules.url(port), "--issuer", rules.issuer(port))
        files = ("--jwks", str(self.root / "jwks.json"), "--keys-dir", str(self._keys))
        what = ("--board", board, "--role", role, "--exp-days", str(DOOR_DAYS))
        return await _run("door_admin", "issue", *what, *where, *files)

    def hand_out(self, role: str, token: Secret) -> Path:
        """Keep the token of a role's door in a file: for a connector that gives models Central's own tools.

        Raises LocalBoardError.
        """
        file = self._token_file(role)
        replace(file, token.reveal().encode() + b"\n")
        return file

    def remove(self) -> list[str]:
        """Delete it; returns what was deleted. Raises OSError."""
        folders = [path for path in (self.root, self._keys) if path.is_dir() and not path.is_symlink()]
        files = [path for path in map(self._token_file, rules.ROLES) if path.exists()]
        for path in folders:
            shutil.rmtree(path)
        for path in files:
            path.unlink()
        return [str(path) for path in (*folders, *files)]

    def _token_file(self, role: str) -> Path:
        return self.folder / f"{role}.jwt"


async def _run(module: str, *words: str) -> str:
    """Run one of Central's own programs and return what it printed. No credential is among the words."""
    command = [sys.executable, "-I", "-m", module, *words]
    environment = daemon_environment(os.environ)
    try:
        with anyio.fail_after(COMMAND_TIMEOUT):
            done = await anyio.run_process(
                command, check=False, stdin=subprocess.DEVNULL, env=environment, cwd="/", start_new_session=True
            )
    except (OSError, TimeoutError) as error:
        raise LocalBoardError(f"{module} {words[0]} failed: {error or 'no end in time'}") from error
    if done.returncode:
        said = blanked(done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2])
        raise LocalBoardError(f"{module} {words[0]} failed: {said or f'exit status {done.returncode}'}")
    return done.stdout.decode().strip()
