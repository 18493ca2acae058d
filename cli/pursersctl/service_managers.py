"""systemd's user manager and launchd: what each is asked, in which order, and what it says of our service."""

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from pursers_shim import service, starts
from pursers_shim.paths import Place
from pursersctl.errors import Failed
from pursersctl.service_files import File, Programs, agent, is_darwin, units

ASK_TIMEOUT = 100.0  # seconds for one command: a daemon that is stopped may drain first

Activity = Literal["running", "listening", "failed", "inactive", "unknown"]


@dataclass(frozen=True, slots=True)
class Step:
    """One command. Where it `may_fail`, its failure means that there was nothing to do."""

    argv: tuple[str, ...]
    may_fail: bool = False

    def __str__(self) -> str:
        return " ".join(self.argv)


@dataclass(frozen=True, slots=True)
class State:
    """What the manager knows of the service."""

    enabled: bool | None = None
    """Whether it begins with the login; None if nobody can be asked."""
    activity: Activity = "unknown"
    pid: int | None = None
    detail: str | None = None
    """How it ended last, when it did not end well."""
    changes: tuple[str, ...] = ()
    """Files of the user that change what we wrote."""
    is_stale: bool = False
    """The manager has not read the files again since they were changed."""


class ServiceManager(Protocol):
    """What both can do. The steps come in the order in which they are carried out; between two lists a daemon changes hands."""

    kind: Literal["systemd", "launchd"]
    name: str

    def files(self, found: Programs, folder: Path | None) -> list[File]:
        """What to write, into the user's own folder or into `folder` for all users."""

    def is_ours(self, text: str) -> bool:
        """Whether we wrote such a file."""

    def unavailable(self) -> str | None:
        """Why the manager cannot be asked, and what to do; None if it can."""

    def before_start(self) -> list[Step]:
        """After the files were written: until nobody listens for a daemon of this service."""

    def begin(self) -> list[Step]:
        """The rest: from now on the service is there."""

    def before_removal(self) -> list[Step]:
        """Until nobody listens any more; the daemon still runs."""

    def after_removal(self) -> list[Step]:
        """When the files are gone."""

    def hold(self, *, force: bool) -> list[Step]:
        """For `pursersctl stop`: start no daemon until `pursersctl start`; with `force` also none after a kill."""

    def unblock(self) -> list[Step]:
        """For `pursersctl start`: forget what failed before."""

    def state(self) -> State:
        """What it knows of the service; changes nothing."""

    def advice(self) -> list[str]:
        """What the user should know besides."""

    def lingers(self) -> bool | None:
        """Whether the service outlives the last logout; None where that is no question."""

    def shared_hint(self, folder: Path) -> str:
        """What is left to do for files that were put into `folder`."""


class Systemd:
    """The user manager of systemd."""

    kind: Literal["systemd", "launchd"] = "systemd"

    def __init__(self, place: Place, environ: Mapping[str, str]) -> None:
        self.name = service.name(place)
        self._place = place
        self._environ = environ
        self._socket, self._service = f"{self.name}.socket", f"{self.name}.service"

    def files(self, found: Programs, folder: Path | None) -> list[File]:
        return units(self._place, found, folder or Path(service.unit_folders(self._environ)[0]))

    def is_ours(self, text: str) -> bool:
        return text.startswith("# Written by `pursersctl service install`")

    def unavailable(self) -> str | None:
        if _which("systemctl", self._environ) is None:
            return "There is no systemctl here. Without systemd no service is needed: each shim starts the daemon."
        if not service.runs(self._environ):
            folder = service.manager_environment(self._environ)["XDG_RUNTIME_DIR"]
            return (
                f"No systemd user manager runs for you ({folder}/systemd is missing). Log in directly, not with su or sudo, or "
                f"have one kept running with: loginctl enable-linger {_user()}\n"
                "In a container without systemd no service is needed: each shim starts the daemon."
            )
        return None

    def before_start(self) -> list[Step]:
        return [
            self._step("daemon-reload"),
            self._step("enable", self._socket),
            self._step("stop", self._socket, may_fail=True),
        ]

    def begin(self) -> list[Step]:
        return [*self.unblock(), self._step("start", self._socket)]

    def before_removal(self) -> list[Step]:
        return [
            self._step("disable", self._socket, self._service, may_fail=True),
            self._step("stop", self._socket, may_fail=True),
        ]

    def after_removal(self) -> list[Step]:
        return [
            self._step("daemon-reload"),
            self._step("stop", self._service, may_fail=True),
            self._step("reset-failed", self._socket, self._service, may_fail=True),
        ]

    def hold(self, *, force: bool) -> list[Step]:
        steps = [self._step("stop", self._socket, may_fail=True)]
        return [*steps, self._step("--no-block", "stop", self._service, may_fail=True)] if force else steps

    def unblock(self) -> list[Step]:
        return [self._step("reset-failed", self._socket, self._service, may_fail=True)]

    def state(self) -> State:
        if self.unavailable() is not None:
            return State()
        wanted = "Id,ActiveState,SubState,Result,UnitFileState,MainPID,DropInPaths,NeedDaemonReload"
        answer = ask(self._step("show", f"--property={wanted}", self._socket, self._service), self._environ)
        found = [dict(line.partition("=")[::2] for line in block.splitlines()) for block in answer.split("\n\n")]
        if len(found) != 2:
            return State()
        listens, runs = found
        pid = int(runs.get("MainPID", "0") or 0)
        wrong = next((unit["Result"] for unit in (runs, listens) if unit.get("ActiveState") == "failed"), None)
        activity: Activity = "inactive"
        if pid:
            activity = "running"
        elif listens.get("ActiveState") == "active":
            activity = "listening"
        elif wrong:
            activity = "failed"
        return State(
            enabled=listens.get("UnitFileState") in ("enabled", "enabled-runtime", "linked"),
            activity=activity,
            pid=pid or None,
            detail=wrong,
            changes=tuple(path for unit in found for path in unit.get("DropInPaths", "").split()),
            is_stale=any(unit.get("NeedDaemonReload") == "yes" for unit in found),
        )

    def advice(self) -> list[str]:
        if self.lingers() is not False:
            return []
        return [
            "Your user manager ends with your last login, and the daemon with it; shims that go on then start one of their own. "
            f"To keep it: loginctl enable-linger {_user()}"
        ]

    def lingers(self) -> bool | None:
        return os.path.exists(f"/var/lib/systemd/linger/{_user()}")

    def shared_hint(self, folder: Path) -> str:
        return f"Enable it for every user with: systemctl --global enable {self._socket}"

    def _step(self, *words: str, may_fail: bool = False) -> Step:
        return Step(("systemctl", "--user", *words), may_fail)


class Launchd:
    """The launchd of macOS, in the domain of the user who is logged in at the screen."""

    kind: Literal["systemd", "launchd"] = "launchd"

    def __init__(self, place: Place, environ: Mapping[str, str]) -> None:
        self.name = service.name(place)
        self._place = place
        self._environ = environ
        self._domain = f"gui/{os.getuid()}"
        self._job = f"{self._domain}/{self.name}"
        self._folder = Path(service.unit_folders(environ)[0])

    def files(self, found: Programs, folder: Path | None) -> list[File]:
        return [agent(self._place, found, folder or self._folder, is_shared=folder is not None)]

    def is_ours(self, text: str) -> bool:
        import plistlib  # here, like all that most commands do not need

        try:
            return bool(plistlib.loads(text.encode()).get("Label") == self.name)
        except (plistlib.InvalidFileException, ValueError, AttributeError):
            return False

    def unavailable(self) -> str | None:
        if not os.access(service.LAUNCHCTL, os.X_OK):
            return f"There is no {service.LAUNCHCTL} here."
        try:
            ask(self._step("print", self._domain), self._environ)
        except Failed:
            return f"launchd has no domain {self._domain}: log in at the screen of this Mac once, then run this again."
        return None

    def before_start(self) -> list[Step]:
        return [self._step("bootout", self._job, may_fail=True)]

    def begin(self) -> list[Step]:
        return [
            self._step("enable", self._job),
            self._step("bootstrap", self._domain, str(self._folder / f"{self.name}.plist")),
        ]

    def before_removal(self) -> list[Step]:
        return []

    def after_removal(self) -> list[Step]:
        return [self._step("bootout", self._job, may_fail=True)]

    def hold(self, *, force: bool) -> list[Step]:
        return []  # a clean end is final, and a start after a kill sees that it is not wanted

    def unblock(self) -> list[Step]:
        return []

    def state(self) -> State:
        try:
            printed = ask(self._step("print", self._job), self._environ)
        except Failed:
            return State(enabled=False, activity="inactive")
        facts = dict(line.strip().partition(" = ")[::2] for line in printed.splitlines() if " = " in line)
        pid, code = facts.get("pid", ""), facts.get("last exit code", "0")
        failed = code.split(":")[0] not in ("0", "(never exited)")
        return State(
            enabled=True,
            activity="running" if pid.isdigit() else "failed" if failed else "inactive",
            pid=int(pid) if pid.isdigit() else None,
            detail=f"exit code {code}" if failed and not pid.isdigit() else None,
        )

    def advice(self) -> list[str]:
        return []

    def lingers(self) -> bool | None:
        return None

    def shared_hint(self, folder: Path) -> str:
        return "It begins with the next login of each user."

    def _step(self, *words: str, may_fail: bool = False) -> Step:
        return Step((service.LAUNCHCTL, *words), may_fail)


def manager(place: Place, environ: Mapping[str, str]) -> ServiceManager:
    """The one of this system."""
    return Launchd(place, environ) if is_darwin() else Systemd(place, environ)


def ask(step: Step, environ: Mapping[str, str]) -> str:
    """Carry out one command and return what it printed. Raises Failed with its words."""
    import subprocess

    try:
        done = subprocess.run(
            step.argv,
            env={**environ, **service.manager_environment(environ)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ASK_TIMEOUT,
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(f"This did not end within {ASK_TIMEOUT:.0f} s: {step}") from error
    except OSError as error:
        raise Failed(f"Cannot run {step.argv[0]}: {error.strerror}.") from error
    if done.returncode and not step.may_fail:
        words = (done.stderr or done.stdout).strip() or "it said nothing"
        raise Failed(f"This failed with exit code {done.returncode}: {step}\n{words}")
    return done.stdout.strip()


def hold(place: Place, environ: Mapping[str, str], *, force: bool) -> None:
    """Have the manager of a service, if there is one, start no daemon. Raises Failed."""
    if (ours := _asked(place, environ)) is not None:
        for step in ours.hold(force=force):
            ask(step, environ)


def unblock(place: Place, environ: Mapping[str, str]) -> None:
    """Have the manager of a service, if there is one, start a daemon although others failed. Raises Failed."""
    if (ours := _asked(place, environ)) is not None:
        starts.forget(place)  # also the daemon itself would give up
        for step in ours.unblock():
            ask(step, environ)


def _asked(place: Place, environ: Mapping[str, str]) -> ServiceManager | None:
    """The manager of an installed service that can be asked."""
    if service.installed(place, environ) is None:
        return None
    ours = manager(place, environ)
    return ours if ours.unavailable() is None else None


def _which(program: str, environ: Mapping[str, str]) -> str | None:
    from shutil import which

    return which(program, path=environ.get("PATH") or os.defpath)


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
