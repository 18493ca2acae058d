"""Whether a service manager looks after the daemon of this user, and how it is asked to start it.

`pursersctl service install` puts the files where `installed` looks. Who finds nobody listening asks the manager instead of
starting a daemon of its own; where no manager runs for this user, nobody can be asked and the daemon is started as without
a service (docs/decisions/0024). Part of the shim: standard library only, and cheap.
"""

import os
import sys
from collections.abc import Mapping

from pursers_shim.paths import Place

__all__ = ["LAUNCHCTL", "installed", "manager_environment", "name", "runs", "start_command", "unit_folders"]

LAUNCHCTL = "/bin/launchctl"

SHARED_FOLDERS = ("/etc/systemd/user", "/usr/local/lib/systemd/user", "/usr/lib/systemd/user", "/lib/systemd/user")
"""Where units for every user of the machine lie."""

SHARED_AGENTS = "/Library/LaunchAgents"


def name(where: Place) -> str:
    """Of the units, and of the launchd job: one for the user's daemon, others for private instances."""
    base = "local.pursersd" if sys.platform == "darwin" else "pursersd"
    if where.home is None:
        return base
    path = os.fsencode(where.home.strip("/"))
    plain = "".join(chr(c) if chr(c).isalnum() and c < 128 else "-" if c == 0x2F else f"_{c:02x}" for c in path)
    return f"{base}{'.' if sys.platform == 'darwin' else '-'}{plain}"


def installed(where: Place, environ: Mapping[str, str]) -> str | None:
    """The file that makes the daemon a service of this user; None if there is none."""
    suffix = ".plist" if sys.platform == "darwin" else ".service"
    for folder in unit_folders(environ):
        path = f"{folder}/{name(where)}{suffix}"
        if os.path.exists(path):
            return path
    return None


def unit_folders(environ: Mapping[str, str]) -> list[str]:
    """Where such files lie, the user's own folder first."""
    home = environ.get("HOME") or os.path.expanduser("~")
    if sys.platform == "darwin":
        return [f"{home}/Library/LaunchAgents", SHARED_AGENTS]
    configured = environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    return [f"{configured}/systemd/user", *SHARED_FOLDERS]


def runs(environ: Mapping[str, str]) -> bool:
    """Whether a service manager runs for this user, so that it can be asked."""
    if sys.platform == "darwin":
        return True
    return os.path.exists(f"{_runtime_folder(environ)}/systemd/private")


def start_command(where: Place, environ: Mapping[str, str]) -> list[str] | None:
    """The command that has the installed service start the daemon; None if there is no service, or nobody to ask."""
    if installed(where, environ) is None or not runs(environ):
        return None
    if sys.platform == "darwin":
        return [LAUNCHCTL, "kickstart", f"gui/{os.getuid()}/{name(where)}"]
    program = _on_path("systemctl", environ)
    # Without waiting: the socket, which comes with it, takes our connection at once, and then we wait for an answer.
    return [program, "--user", "--no-block", "start", f"{name(where)}.service"] if program else None


def manager_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What `systemctl --user` needs besides, and hosts may have left out."""
    return {} if sys.platform == "darwin" else {"XDG_RUNTIME_DIR": _runtime_folder(environ)}


def _runtime_folder(environ: Mapping[str, str]) -> str:
    return environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"


def _on_path(program: str, environ: Mapping[str, str]) -> str | None:
    for folder in (environ.get("PATH") or os.defpath).split(os.pathsep):
        path = os.path.join(folder, program)
        if os.path.isabs(path) and os.access(path, os.X_OK):
            return path
    return None
