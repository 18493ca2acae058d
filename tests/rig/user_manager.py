"""A user manager for tests: `systemctl --user` as far as `pursersctl service` uses it, and the process that it speaks to.

`install` puts a `systemctl` into a folder for PATH. It notes each call in `calls` and fails with the words in the file
`fail-VERB` if there is one. Of the units it obeys ConditionPathExists, ListenStream, Environment and ExecStart; a service that
fails is started again at once, STARTS times in a row at most.
"""

import fcntl
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from rig.activation import Activation

PATIENCE = 30.0
LIFETIME = 120.0
"""Seconds after which it ends in any case."""

STARTS = 2


def install(folder: Path) -> dict[str, str]:
    """Make the programs and folders of a manager below `folder`; returns the variables that lead to it."""
    (folder / "bin").mkdir(parents=True)
    (folder / "systemd").mkdir()
    (folder / "systemd" / "private").touch()
    program = folder / "bin" / "systemctl"
    paths = ":".join(str(path) for path in (Path(__file__).parents[1],))
    program.write_text(f'#!/bin/sh\nPYTHONPATH={paths} exec {sys.executable} {Path(__file__)} "$@"\n')
    program.chmod(0o755)
    return {"XDG_RUNTIME_DIR": str(folder), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


def calls(folder: Path) -> list[str]:
    """What the manager was asked so far, without `show`."""
    file = folder / "systemd" / "calls"
    found = file.read_text().splitlines() if file.exists() else []
    return [call for call in found if not call.startswith("show")]


class Unit:
    """A socket and its service, in files below the runtime folder."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = Path(os.environ["XDG_RUNTIME_DIR"], "systemd")
        self.units = Path(os.environ["HOME"], ".config", "systemd", "user")
        self.wanted, self.asked, self.stop = (self.folder / f"{name}.{what}" for what in ("listens", "asked", "stop"))
        self.pid, self.failed, self.lock = (self.folder / f"{name}.{what}" for what in ("pid", "failed", "lock"))
        self.enabled = self.folder / f"{name}.enabled"

    def text(self, kind: str) -> dict[str, str]:
        lines = (self.units / f"{self.name}.{kind}").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))

    def may_begin(self) -> bool:
        return not os.path.lexists(self.text("socket")["ConditionPathExists"].removeprefix("!"))

    def begin(self, kind: str) -> None:
        """Have the process run, and wait until it listens."""
        if not self.may_begin():
            return
        self.failed.unlink(missing_ok=True)
        self.wanted.touch()
        if kind == "service":
            self.asked.touch()
        if not self.is_kept():
            with (self.folder / "output").open("ab") as output:
                argv = [sys.executable, __file__, "--keep", self.name]
                subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
        self.until(self.is_kept)

    def is_kept(self) -> bool:
        with self.lock.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return self.lock.read_text() == "listening" or not self.wanted.exists()
        return False

    def until(self, condition) -> None:  # type: ignore[no-untyped-def]
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                sys.exit(f"{self.name}: it does not come to pass")
            time.sleep(0.01)


class Keeper:
    """The process behind one unit: listens, starts the daemon when somebody connects, and again when it fails."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.service = unit.text("service")
        self.activation: Activation | None = None
        self.child: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def run(self) -> None:
        unit, end = self.unit, time.monotonic() + LIFETIME
        with unit.lock.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            while time.monotonic() < end and (unit.wanted.exists() or self.child is not None):
                self.follow_the_socket()
                self.follow_the_service()
                unit.lock.write_text("listening" if self.activation is not None else "")
                time.sleep(0.01)
            unit.lock.write_text("")
            if self.child is not None:
                self.child.kill()
                self.child.wait()

    def follow_the_socket(self) -> None:
        if self.unit.wanted.exists() == (self.activation is not None):
            return
        if self.activation is not None:
            self.activation.close()
            self.activation = None
        else:
            self.activation = Activation(self.unit.text("socket")["ListenStream"], self.unit.folder)

    def follow_the_service(self) -> None:
        if self.child is None:
            if self.activation is not None and (self.unit.asked.exists() or self.is_wanted(self.activation)):
                self.start(self.activation)
            return
        if self.unit.stop.exists() and self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            self.unit.stop.unlink()
        status = self.child.poll()
        if status is None:
            return
        self.child = None
        self.unit.pid.unlink()
        ended_well = status == 0 and self.activation is not None and self.activation.count("READY")
        if not ended_well and self.starts >= STARTS:
            self.unit.failed.write_text("service-start-limit-hit")
            self.unit.wanted.unlink(missing_ok=True)
        elif not ended_well and self.activation is not None:
            self.start(self.activation)
        else:
            self.starts = 0

    def start(self, activation: Activation) -> None:
        self.unit.asked.unlink(missing_ok=True)
        self.starts += 1
        activation.listen()
        activation.heard.clear()
        # The manager's own variables, not those of who asked it.
        environ = {name: os.environ[name] for name in ("PATH", "HOME", "PURSERSD_RIG_RUN") if name in os.environ}
        environ |= dict(word.split("=", 1) for word in shlex.split(self.service.get("Environment", "")))
        with (self.unit.folder / "output").open("ab") as output:
            self.child = activation.start(shlex.split(self.service["ExecStart"]), environ, output, watchdog_s=60)
        self.unit.pid.write_text(str(self.child.pid))

    def is_wanted(self, activation: Activation) -> bool:
        return bool(select.select([activation.listener], [], [], 0)[0])


def obey(verb: str, unit: Unit, kind: str) -> None:
    match verb, kind:
        case "enable", _:
            unit.enabled.touch()
        case "disable", _:
            unit.enabled.unlink(missing_ok=True)
        case "reset-failed", _:
            unit.failed.unlink(missing_ok=True)
        case "start", _:
            unit.begin(kind)
        case "stop", "socket":
            unit.wanted.unlink(missing_ok=True)
            unit.until(lambda: unit.lock.exists() is False or unit.lock.read_text() != "listening")
        case "stop", "service":
            if unit.pid.exists():
                unit.stop.touch()
                unit.until(lambda: not unit.pid.exists())
        case "show", "socket":
            active = "active" if unit.wanted.exists() else "failed" if unit.failed.exists() else "inactive"
            result = unit.failed.read_text() if unit.failed.exists() else "success"
            file_state = "enabled" if unit.enabled.exists() else "disabled"
            print(f"Id={unit.name}.socket\nActiveState={active}\nResult={result}\nUnitFileState={file_state}\n")
        case "show", "service":
            pid = unit.pid.read_text() if unit.pid.exists() else "0"
            print(f"Id={unit.name}.service\nMainPID={pid}\nActiveState={'active' if pid != '0' else 'inactive'}\n")


def main() -> None:
    words = [word for word in sys.argv[1:] if word not in ("--user", "--no-block") and not word.startswith("--prop")]
    if words[0] == "--keep":
        Keeper(Unit(words[1])).run()
        return
    verb, *names = words
    folder = Path(os.environ["XDG_RUNTIME_DIR"], "systemd")
    with (folder / "calls").open("a") as calls:
        calls.write(" ".join(words) + "\n")
    with suppress(FileNotFoundError):
        sys.exit((folder / f"fail-{verb}").read_text())
    for name in names:
        stem, _, kind = name.rpartition(".")
        obey(verb, Unit(stem), kind)


if __name__ == "__main__":
    main()
