"""Where the files of the known hosts lie on this machine, and whether a host is there at all."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pursersctl.hosts_known import SHIM, Known
from pursersctl.hosts_known import Path as Keys
from pursersctl.hosts_report import Scope


@dataclass(frozen=True, slots=True)
class Machine:
    """What the places depend on."""

    environ: Mapping[str, str]
    home: Path
    folder: Path
    """The project: where `pursersctl` was started."""
    mac: bool
    applications: tuple[Path, ...] = (Path("/Applications"),)
    """Where macOS keeps programs with windows."""

    def config(self) -> Path:
        """The folder of configuration files of Linux programs."""
        return _absolute(self.environ.get("XDG_CONFIG_HOME")) or self.home / ".config"

    def support(self, name: str) -> Path:
        """The folder of a program that keeps its files as its platform wants."""
        return (self.home / "Library/Application Support" if self.mac else self.config()) / name

    def program(self, names: tuple[str, ...]) -> str | None:
        """The first of these programs on the PATH, as an absolute path."""
        path = self.environ.get("PATH", os.defpath)
        found = next((where for name in names if (where := shutil.which(name, path=path))), None)
        return os.path.abspath(found) if found else None

    def shim(self) -> str:
        """The shim that belongs to this pursersctl, else the one on the PATH, else where it should be."""
        beside = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), SHIM)
        return beside if os.access(beside, os.X_OK) else self.program((SHIM,)) or beside


@dataclass(frozen=True, slots=True)
class Place:
    """A file of a host, and where in it the servers of a scope stand."""

    path: Path
    scope: Scope
    container: Keys


def this_machine(environ: Mapping[str, str]) -> Machine:
    """The machine, user and folder that we run for."""
    home = environ.get("HOME")
    return Machine(environ, Path(home) if home else Path.home(), Path.cwd(), sys.platform == "darwin")


def places(known: Known, machine: Machine) -> list[Place]:
    """Where a host looks for servers: the file that `hosts add` takes first, of each scope."""
    files = _FILES[known.name](machine)
    found = [Place(path, "user", known.container) for path in files]
    if known.own_entries:
        found.append(Place(files[0], "local", ("projects", str(machine.folder), *known.container)))
    if known.project:
        found += [Place(path, "project", known.container) for path in _project_files(known, machine.folder)]
    return found


def scopes(known: Known) -> list[Scope]:
    """The scopes that a host has."""
    found: list[Scope] = ["user"]
    if known.project:
        found.append("project")
    if known.own_entries:
        found.append("local")
    return found


def installed(known: Known, machine: Machine) -> tuple[bool, str | None]:
    """Whether the host, or a trace of it, is there, and its program if that was found."""
    program = machine.program(known.programs)
    traces = _TRACES[known.name](machine)
    return program is not None or any(trace.exists() for trace in traces), program


def _absolute(text: str | None) -> Path | None:
    """A folder from a variable; hosts ignore relative ones, and so do we."""
    return Path(text) if text and os.path.isabs(text) else None


def _first(candidates: list[Path], default: Path) -> list[Path]:
    """Those that exist, else the one to create."""
    return [path for path in candidates if os.path.lexists(path)] or [default]


def _project_files(known: Known, folder: Path) -> list[Path]:
    default = folder / str(known.project)
    if known.name == "opencode":
        return _first([folder / "opencode.jsonc", default], default)
    return [default]


def _claude_code(machine: Machine) -> list[Path]:
    return [(_absolute(machine.environ.get("CLAUDE_CONFIG_DIR")) or machine.home) / ".claude.json"]


def _codex(machine: Machine) -> list[Path]:
    return [(_absolute(machine.environ.get("CODEX_HOME")) or machine.home / ".codex") / "config.toml"]


def _gemini(machine: Machine) -> list[Path]:
    return [(_absolute(machine.environ.get("GEMINI_CLI_HOME")) or machine.home) / ".gemini/settings.json"]


def _zed_folders(machine: Machine) -> list[Path]:
    if machine.mac:
        return [machine.home / ".config/zed"]
    return [machine.config() / "zed", machine.home / ".var/app/dev.zed.Zed/config/zed"]


def _zed(machine: Machine) -> list[Path]:
    folders = _zed_folders(machine)
    return [path / "settings.json" for path in _first(folders, folders[0])]


def _goose(machine: Machine) -> list[Path]:
    root = _absolute(machine.environ.get("GOOSE_PATH_ROOT"))
    return [(root / "config" if root else machine.config() / "goose") / "config.yaml"]


def _vscode_folders(machine: Machine) -> list[Path]:
    return [machine.support(name) / "User" for name in ("Code", "Code - Insiders", "VSCodium")]


def _vscode(machine: Machine) -> list[Path]:
    folders = _vscode_folders(machine)
    return [path / "mcp.json" for path in _first(folders, folders[0])]


def _opencode(machine: Machine) -> list[Path]:
    given = _absolute(machine.environ.get("OPENCODE_CONFIG"))
    folder = machine.config() / "opencode"
    names = ("opencode.jsonc", "opencode.json", "config.json")
    found = _first([folder / name for name in names], folder / "opencode.json")
    return [given, *found] if given else found


_FILES: Mapping[str, Callable[[Machine], list[Path]]] = {
    "claude-code": _claude_code,
    "claude-desktop": lambda machine: [machine.support("Claude") / "claude_desktop_config.json"],
    "codex": _codex,
    "gemini-cli": _gemini,
    "zed": _zed,
    "goose": _goose,
    "cursor": lambda machine: [machine.home / ".cursor/mcp.json"],
    "vscode": _vscode,
    "opencode": _opencode,
}


def _applications(machine: Machine, name: str) -> list[Path]:
    return [folder / f"{name}.app" for folder in machine.applications] if machine.mac else []


_TRACES: Mapping[str, Callable[[Machine], list[Path]]] = {
    "claude-code": lambda machine: [*_claude_code(machine), machine.home / ".claude"],
    "claude-desktop": lambda machine: [machine.support("Claude"), *_applications(machine, "Claude")],
    "codex": lambda machine: [path.parent for path in _codex(machine)],
    "gemini-cli": lambda machine: [path.parent for path in _gemini(machine)],
    "zed": lambda machine: [*_zed_folders(machine), *_applications(machine, "Zed")],
    "goose": lambda machine: [*(path.parent for path in _goose(machine)), *_applications(machine, "Goose")],
    "cursor": lambda machine: [machine.home / ".cursor", *_applications(machine, "Cursor")],
    "vscode": lambda machine: [*_vscode_folders(machine), *_applications(machine, "Visual Studio Code")],
    "opencode": lambda machine: [machine.config() / "opencode"],
}
