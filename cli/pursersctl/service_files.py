"""The files that make the daemon a service: filled in from the templates in systemd/ and launchd/, compared, put in place."""

import os
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pursers_shim import service
from pursers_shim.paths import Place
from pursersctl.errors import Failed
from pursersd import api

FileState = Literal["as rendered", "differs", "missing"]


@dataclass(frozen=True, slots=True)
class Programs:
    """The absolute paths of our programs, as they were called: a symbolic link survives an upgrade, its target may not."""

    daemon: str
    control: str


@dataclass(frozen=True, slots=True)
class File:
    """One file of a service: where it belongs, and what should be in it."""

    path: Path
    text: str

    @property
    def found(self) -> str | None:
        """What is in it; None if it does not exist. Raises Failed if it cannot be read."""
        try:
            return self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise Failed(f"Cannot read {self.path}: {error}. Move it away and run this again.") from error

    @property
    def state(self) -> FileState:
        """How what is there compares with what should be."""
        found = self.found
        return "missing" if found is None else "as rendered" if found == self.text else "differs"

    def shown(self) -> str:
        """What writing it would do, for people: the whole text of a new file, else the difference."""
        import difflib  # here, like all that most commands do not need

        found = self.found
        if found == self.text:
            return f"{self.path}: as it should be\n"
        if found is None:
            return f"{self.path} (new):\n" + "".join(f"  {line}".rstrip() + "\n" for line in self.text.splitlines())
        lines = difflib.unified_diff(
            found.splitlines(), self.text.splitlines(), str(self.path), "new", lineterm="", n=1
        )
        return f"{self.path} (changes):\n" + "".join(f"  {line}".rstrip() + "\n" for line in lines)

    def write(self) -> None:
        """Put it in place, in one step. Raises Failed."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fd, fresh = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
            try:
                with os.fdopen(fd, "w", encoding="utf-8") as out:
                    out.write(self.text)
                os.chmod(fresh, 0o644)
                os.replace(fresh, self.path)
            except OSError:
                os.unlink(fresh)
                raise
        except OSError as error:
            raise Failed(f"Cannot write {self.path}: {error.strerror}.") from error

    def remove(self) -> bool:
        """Take it away; whether it was there. Raises Failed."""
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise Failed(f"Cannot remove {self.path}: {error.strerror}.") from error
        return True


def programs(argv0: str) -> Programs:
    """`pursersd` and `pursersctl` that belong together: beside the program that runs, else where pip puts scripts."""
    for folder in (os.path.dirname(argv0), sysconfig.get_path("scripts")):
        found = Programs(os.path.join(folder, "pursersd"), os.path.join(folder, "pursersctl"))
        if os.path.isabs(folder) and os.access(found.daemon, os.X_OK) and os.access(found.control, os.X_OK):
            return found
    raise Failed("The programs pursersd and pursersctl are not beside one another. Install the package again.")


def units(place: Place, found: Programs, folder: Path) -> list[File]:
    """The systemd units of this place, for `folder`."""
    name = service.name(place)
    runtime = _escaped(place.folder) if place.home is not None else "/tmp/pursersd-%U"
    home = f'Environment="PURSERSD_HOME={_quotable(place.home)}"\n' if place.home is not None else ""
    values = {
        "NAME": name,
        "FOLDER": runtime,
        "SOCKET": f"{runtime}/{os.path.basename(place.socket)}",
        "PROGRAM": _word(found.daemon),
        "CONTROL": _word(found.control),
        "ENVIRONMENT": home,
    }
    kinds = ("socket", "service")
    return [File(folder / f"{name}.{kind}", _filled(_template(f"systemd/pursersd.{kind}"), values)) for kind in kinds]


def agent(place: Place, found: Programs, folder: Path, *, is_shared: bool) -> File:
    """The launchd agent of this place, for `folder`. One that is shared by all users names no file of one of them."""
    import plistlib

    values = {"NAME": service.name(place), "PROGRAM": found.daemon, "HOME": place.home or ""}
    values["LOGS"] = os.path.dirname(api.log_file(place.home))
    job: dict[str, Any] = plistlib.loads(_template("launchd/pursersd.plist").encode())
    if place.home is None:
        del job["EnvironmentVariables"]["PURSERSD_HOME"]
    if is_shared:
        job["StandardErrorPath"] = "/dev/null"
    text = plistlib.dumps({key: _filled_in(value, values) for key, value in job.items()}, sort_keys=False).decode()
    return File(folder / f"{values['NAME']}.plist", text)


def program_in(text: str) -> str | None:
    """The daemon's program that a unit or an agent starts; None where none is named."""
    if text.startswith("<?xml"):
        import plistlib

        try:
            arguments = plistlib.loads(text.encode()).get("ProgramArguments")
        except (plistlib.InvalidFileException, ValueError, AttributeError):
            return None
        return str(arguments[0]) if arguments else None
    for line in text.splitlines():
        if line.startswith("ExecStart="):
            command = line.removeprefix("ExecStart=")
            word = command[1:].partition('"')[0] if command.startswith('"') else command.partition(" ")[0]
            return word.replace("%%", "%").replace("\\\\", "\\")
    return None


def _template(name: str) -> str:
    from importlib.resources import files

    return files("pursersctl").joinpath(name).read_text(encoding="utf-8")


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _filled_in(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _filled(value, values)
    if isinstance(value, list):
        return [_filled_in(item, values) for item in value]
    if isinstance(value, dict):
        return {name: _filled_in(item, values) for name, item in value.items()}
    return value


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _quotable(text: str) -> str:
    return _escaped(text).replace("\\", "\\\\").replace('"', '\\"')


def _word(path: str) -> str:
    """A path as one word of a command line of systemd."""
    return f'"{_quotable(path)}"' if any(c in path for c in " \t'\"\\;$") else _escaped(path)


def is_darwin() -> bool:
    """Whether launchd looks after services here, and not systemd."""
    return sys.platform == "darwin"
