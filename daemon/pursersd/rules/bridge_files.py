"""Where the files lie that daemon and bridge share (bridge.md §7, D20)."""

import os
from collections.abc import Mapping

FOLDER_VARIABLE = "PURSERS_BRIDGE_STATE_DIR"
STATS_VARIABLE = "PURSERS_BRIDGE_STATS"
DIGEST_VARIABLE = "PURSERS_BRIDGE_STATE"
KEYS_VARIABLE = "PURSERS_REQUEST_STATE_KEY_FILE"


def state_folder(environ: Mapping[str, str], home: str | None, cwd: str = "/") -> str:
    """The folder of a program with this environment: below the private instance `home`, else where the bridge keeps it.

    A relative path begins in `cwd`.
    """
    if home is not None:
        return os.path.join(home, "state")
    named = environ.get(FOLDER_VARIABLE, "").strip()
    return _absolute(named or "~/.pursers/wait-bridge", environ, cwd)


def stats_path(environ: Mapping[str, str], home: str | None, cwd: str = "/") -> str:
    """The bridge-stats.json of a program with this environment: the file that it names, else the one in its folder.

    The bridge's own default lies in the folder where it is installed.
    """
    named = environ.get(STATS_VARIABLE, "").strip()
    if named:
        return _absolute(named, environ, cwd)
    return os.path.join(state_folder(environ, home, cwd), "bridge-stats.json")


def digest_path(environ: Mapping[str, str], home: str | None, board: str, cwd: str = "/") -> str:
    """The file in which a bridge with this environment and home board keeps what was acknowledged and is watched."""
    named = environ.get(DIGEST_VARIABLE, "").strip()
    if named:
        return _absolute(named, environ, cwd)
    return os.path.join(state_folder(environ, home, cwd), f"orchestrator_state_{board}.json")


def keys_path(environ: Mapping[str, str], folder: str, cwd: str = "/") -> str:
    """The request-state.keys of a program with this environment: the file that it names, else the one in its state folder."""
    named = environ.get(KEYS_VARIABLE, "").strip()
    return _absolute(named, environ, cwd) if named else os.path.join(folder, "request-state.keys")


def _absolute(path: str, environ: Mapping[str, str], cwd: str) -> str:
    if path == "~" or path.startswith("~/"):
        path = (environ.get("HOME") or os.path.expanduser("~")) + path[1:]
    return os.path.normpath(os.path.join(cwd, path))
