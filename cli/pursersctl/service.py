"""`pursersctl service`: make the daemon a service of this user, take that back, and say how it stands."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from pursers_shim import dial
from pursers_shim.paths import Place
from pursersctl import client, lifecycle, output, printed
from pursersctl.errors import Failed
from pursersctl.render import DEFAULT_WIDTH, fact, wrapped
from pursersctl.service_files import File, program_in, programs
from pursersctl.service_folders import MadeFolders
from pursersctl.service_managers import ServiceManager, State, Step, ask, manager
from pursersctl.table import Line, clean
from pursersctl.usage import Commands, Json
from pursersd import api

app = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode=None)

NOT_INSTALLED = 2
"""Exit code of `service status` without a service."""

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print the files and the commands.")]
SystemPath = Annotated[
    Path | None,
    typer.Option(
        "--system-path",
        metavar="FOLDER",
        help="Of a package or an administrator: the folder for every user's services, such as /etc/systemd/user. Only the files "
        "there are written, removed or looked at.",
    ),
]


@dataclass(frozen=True, slots=True)
class Service:
    """The service of one place: its manager, its files, and where we are."""

    place: Place
    environ: Mapping[str, str]
    manager: ServiceManager
    files: list[File]
    is_shared: bool

    @property
    def made(self) -> MadeFolders:
        """The folders that were made for the files of this user's own service."""
        return MadeFolders(api.state_folder(self.place.home), self.manager.name)

    def check_ours(self) -> None:
        """Raise Failed if somebody else's file lies where one of ours belongs."""
        for file in self.files:
            found = file.found
            if found is not None and not self.manager.is_ours(found):
                raise Failed(
                    f"{file.path} is there and was not written by pursersctl. Move it away and run this again."
                )

    def carry_out(self, steps: list[Step]) -> None:
        """Run the commands, showing each."""
        for step in steps:
            output.say(f"$ {step}")
            ask(step, self.environ)


def of(place: Place, environ: Mapping[str, str], folder: Path | None) -> Service:
    """The service that belongs to `place`; with `folder` the one for every user."""
    if folder is not None and place.home is not None:
        raise Failed("A private instance (PURSERSD_HOME) is no service for every user.")
    found = manager(place, environ)
    return Service(place, environ, found, found.files(programs(sys.argv[0]), folder), folder is not None)


def install(wanted: Service, *, dry_run: bool) -> None:
    """Write the files, have the manager read them, and let a daemon that runs already go on as the service."""
    ours = wanted.manager
    wanted.check_ours()
    trouble = None if wanted.is_shared or dry_run else ours.unavailable()
    if trouble is not None:
        raise Failed(f"{trouble}\nNothing was changed. See the files with: pursersctl service install --dry-run")
    for file in wanted.files:
        output.write(file.shown())
    if dry_run:
        for step in [] if wanted.is_shared else [*ours.before_start(), *ours.begin()]:
            output.say(f"$ {step}")
        output.note("Nothing was changed.")
        return
    changed = [file for file in wanted.files if file.state != "as rendered"]
    for file in changed:
        if not wanted.is_shared:
            wanted.made.expect(file.path)
        file.write()
    if wanted.is_shared:
        output.say(ours.shared_hint(wanted.files[0].path.parent))
        return
    state = ours.state()
    if not changed and state.enabled and state.activity in ("running", "listening") and not state.is_stale:
        output.say(f"{ours.name} is installed already.")
        return
    wanted.carry_out(ours.before_start())
    with lifecycle.replaced(wanted.place) as before:
        wanted.carry_out(ours.begin())
    _report(wanted, before)


def _report(wanted: Service, before: int | None) -> None:
    place = wanted.place
    if os.path.lexists(place.stopped):
        output.say("Installed. It was stopped with pursersctl stop and stays so until: pursersctl start")
    elif before is not None or wanted.manager.kind == "launchd":
        output.say(f"Installed: pursersd runs as a service (pid {lifecycle.launch(place, wanted.environ, 'auto')}).")
    else:
        output.say("Installed: pursersd starts as a service when a conversation needs it.")
    for text in wanted.manager.advice():
        output.note(text)


def uninstall(wanted: Service, *, dry_run: bool) -> None:
    """Take the service away; the daemon leaves, and conversations that wait go on with one that their shims start."""
    ours = wanted.manager
    wanted.check_ours()
    there = [file for file in wanted.files if file.found is not None]
    if not there:
        output.say(f"{ours.name} is not installed.")
        return
    can_ask = not wanted.is_shared and ours.unavailable() is None
    steps = (ours.before_removal(), ours.after_removal()) if can_ask else ([], [])
    if dry_run:
        lines = [*(f"$ {step}" for step in steps[0]), *(f"remove {file.path}" for file in there)]
        for line in [*lines, *(f"$ {step}" for step in steps[1])]:
            output.say(line)
        output.note("Nothing was changed.")
        return
    wanted.carry_out(steps[0])
    for file in there:
        if file.remove():
            output.say(f"removed {file.path}")
    wanted.carry_out(steps[1])
    if not wanted.is_shared:
        wanted.made.remove()
    output.say(f"{ours.name} is not a service any more.")


def status(wanted: Service, *, as_json: bool) -> int:
    """Print how the service stands; returns the exit code. Changes nothing."""
    found = look(wanted)
    if as_json:
        output.show_json(msgspec.json.encode(found))
    else:
        output.show(rendered(found, output.width()))
    if not found.installed:
        return NOT_INSTALLED
    return 1 if found.problems else 0


def look(wanted: Service) -> printed.ServiceStatus:
    """How the service stands. Changes nothing."""
    files = wanted.files
    is_there = any(file.found is not None for file in files)
    state = State() if wanted.is_shared or not is_there else wanted.manager.state()
    text = files[-1].found
    program = program_in(text) if text is not None else None
    return printed.ServiceStatus(
        manager=wanted.manager.kind,
        name=wanted.manager.name,
        installed=is_there,
        files=[printed.ServiceFile(path=str(file.path), state=file.state) for file in files],
        changes=list(state.changes),
        enabled=state.enabled,
        activity=state.activity,
        pid=state.pid,
        program=program,
        lingers=wanted.manager.lingers(),
        problems=_problems(wanted, state, program) if is_there else [],
    )


def _problems(wanted: Service, state: State, program: str | None) -> list[str]:
    again = "Run: pursersctl service install"
    found = [
        f"{file.path} {'is missing' if file.state == 'missing' else 'is not what this version would write'}. {again}"
        for file in wanted.files
        if file.state != "as rendered"
    ]
    if program is not None and not os.access(program, os.X_OK):
        found.append(f"The program {program} is not there, or cannot be run. {again}")
    if wanted.is_shared:
        return found
    trouble = wanted.manager.unavailable()
    if trouble is not None:
        return [*found, trouble]
    if state.is_stale:
        found.append(f"The files were changed since they were read. {again}")
    if state.enabled is False:
        found.append(f"It is not enabled: it does not begin with the login. {again}")
    if os.path.lexists(wanted.place.stopped):
        found.append("It was stopped with pursersctl stop. Start it with: pursersctl start")
    elif state.activity in ("failed", "inactive"):
        how = f" ({state.detail})" if state.detail else ""
        found.append(f"It has ended{how}, or was stopped. See: pursersctl status, pursersctl logs. {again}")
    other = dial.daemon_pid(wanted.place)
    if other and state.pid != other and state.activity != "unknown":
        found.append(f"The daemon that runs (pid {other}) is not the one of the service. {again}")
    return found


def rendered(found: printed.ServiceStatus, width: int = DEFAULT_WIDTH) -> list[Line]:
    """The page of `pursersctl service status`."""
    lines: list[Line] = [((found.name, "bold"), ("  ", ""), (_headline(found), "bold"))]
    lines += [fact("manager", found.manager)]
    if found.installed:
        lines += [fact("program", clean(found.program or "–"))]
        lines += [fact("at login", {True: "enabled", False: "not enabled", None: "unknown"}[found.enabled])]
        if found.pid is not None:
            lines += [fact("pid", str(found.pid))]
        if found.lingers is not None:
            lines += [fact("linger", "on" if found.lingers else "off: it ends with the last login")]
    lines += [fact("file", clean(f"{file.path} ({file.state})")) for file in found.files]
    lines += [fact("changed by", clean(path)) for path in found.changes]
    if found.problems:
        lines += [(), (("Problems", "bold"),)]
    for problem in found.problems:
        lines += wrapped(problem, width, indent=2, style="yellow")
    if not found.installed:
        lines += [(), (("Install it with: pursersctl service install", ""),)]
    return lines


def _headline(found: printed.ServiceStatus) -> str:
    return found.activity if found.installed else "not installed"


@app.callback()
def group() -> None:
    """Make the daemon a service of this user: of systemd (Linux) or launchd (macOS).

    \b
    Examples:
      pursersctl service install --dry-run
      pursersctl service install
      pursersctl service status
      pursersctl service uninstall
    """


@app.command("install", short_help="Write the service and have its manager run the daemon.")
def install_command(dry_run: DryRun = False, system_path: SystemPath = None) -> None:
    """Show and write the service's files, and have the service manager begin with them.

    \b
    Examples:
      pursersctl service install --dry-run
      pursersctl service install
      pursersctl service install --system-path /etc/systemd/user
    """
    with output.reporting():
        install(of(client.where(os.environ), os.environ, system_path), dry_run=dry_run)


@app.command("uninstall")
def uninstall_command(dry_run: DryRun = False, system_path: SystemPath = None) -> None:
    """Take the service away again; shims start the daemon as before.

    \b
    Examples:
      pursersctl service uninstall --dry-run
      pursersctl service uninstall
    """
    with output.reporting():
        uninstall(of(client.where(os.environ), os.environ, system_path), dry_run=dry_run)


@app.command("status", short_help="Say how it stands, and what is wrong.")
def status_command(system_path: SystemPath = None, as_json: Json = False) -> None:
    """Say whether the service is installed, enabled and active, and which program it starts.

    \b
    Examples:
      pursersctl service status
      pursersctl service status --json | jq -r '.problems[]'
      pursersctl service status >/dev/null || echo "not well: exit code $?"
    """
    with output.reporting(as_json=as_json):
        sys.exit(status(of(client.where(os.environ), os.environ, system_path), as_json=as_json))
