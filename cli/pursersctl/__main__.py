"""`pursersctl`: see and steer the daemon. The commands are thin: parse, one call, render."""

import os
from typing import Annotated

import typer

from pursers_shim import __version__
from pursersctl import (
    client,
    completion,
    config,
    doctor_command,
    doors,
    hosts,
    local,
    manual,
    output,
    seeing,
    service,
    sweep_command,
)
from pursersctl.lifecycle import restart, start, stop
from pursersctl.reap import reap
from pursersctl.stats import stats
from pursersctl.status import conversation, status
from pursersctl.usage import Commands, Json

# Help without rich: it costs as much time as the rest of a command, and pipes get plain text either way.
app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

StateDir = Annotated[
    str | None,
    typer.Option(
        "--state-dir",
        metavar="DIR",
        help="Where the doors lie, instead of PURSERS_BRIDGE_STATE_DIR or the usual place.",
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        output.say(f"pursersctl {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """See and steer pursersd, the daemon behind all conversations of this user.

    \b
    Examples:
      pursersctl status     is the daemon well, and what does it work with?
      pursersctl ps         which conversations are there, what do they do?
      pursersctl top        the same, and how long things take, as it goes on
      pursersctl stats      what do they cost, and what do they bring?
      pursersctl logs -f    what is happening?
      pursersctl doctor     what is wrong, and what repairs it?
      pursersctl help ps    everything about a command

    Exit codes are listed in docs/cli.md.
    """


seeing.add(app)


@app.command("status", short_help="Show the daemon and what is wrong, or one conversation.")
def status_command(
    as_json: Json = False,
    which: Annotated[
        str | None,
        typer.Option(
            "--conversation",
            metavar="ID",
            help="Show one conversation: its id or the beginning of it, its shim's pid, or its seat's name.",
        ),
    ] = None,
) -> None:
    """Show the daemon, its Centrals, and what is wrong; or one conversation with every setting and its origin.

    \b
    Examples:
      pursersctl status
      pursersctl status --conversation 20419
      pursersctl status --json | jq '.warnings'
      pursersctl status >/dev/null 2>&1 || echo "not well: exit code $?"
    """
    with output.reporting(as_json=as_json):
        if which is None:
            status(client.where(os.environ), as_json=as_json)
        else:
            conversation(client.where(os.environ), which, as_json=as_json)


@app.command("stats")
def stats_command(
    as_json: Json = False,
    board: Annotated[str | None, typer.Option("--board", metavar="BOARD", help="Only the seats of this board.")] = None,
    seat: Annotated[str | None, typer.Option("--seat", metavar="NAME", help="Only the seats of this name.")] = None,
    file: Annotated[str | None, typer.Option("--file", metavar="PATH", help="Another bridge-stats.json.")] = None,
) -> None:
    """Show what each seat called and what its waits brought.

    \b
    Examples:
      pursersctl stats
      pursersctl stats --board demo --seat ada
      pursersctl stats --json | jq '.seats[] | select(.fallback).seat'
    """
    with output.reporting(as_json=as_json):
        where = client.where(os.environ)
        stats(where, os.environ, file=file, board=board, seat=seat, as_json=as_json)


@app.command("start", short_help="Start the daemon, also after `stop`.")
def start_command() -> None:
    """Start the daemon, also after `stop`, and wait until it answers.

    \b
    Examples:
      pursersctl start
      PURSERSD_HOME=/tmp/try pursersctl start    a private instance
    """
    with output.reporting():
        start(client.where(os.environ), os.environ)


@app.command("stop")
def stop_command(
    drain: Annotated[bool, typer.Option("--drain", help="First let calls in progress end.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Send SIGTERM, then SIGKILL: for one that hangs.")] = False,
) -> None:
    """Stop the daemon; no shim starts it again until `start`.

    \b
    Examples:
      pursersctl stop
      pursersctl stop --drain
      pursersctl stop --force
    """
    if drain and force:
        raise typer.BadParameter("--drain and --force exclude one another.")
    with output.reporting():
        stop(client.where(os.environ), drain=drain, force=force)


@app.command("restart", short_help="Replace the daemon by a new one; conversations go on.")
def restart_command() -> None:
    """Replace the daemon by a new one; conversations keep their calls.

    \b
    Examples:
      pip install --upgrade pursersd && pursersctl restart
    """
    with output.reporting():
        restart(client.where(os.environ), os.environ)


@app.command("reap", short_help="List what is there for nobody, and end it with --yes.")
def reap_command(
    yes: Annotated[bool, typer.Option("--yes", help="End what is found; without it, it is only listed.")] = False,
    as_json: Json = False,
) -> None:
    """List what is there for nobody: shims without a host, conversations without a shim. Nothing whose host lives.

    \b
    Examples:
      pursersctl reap
      pursersctl reap --yes
    """
    with output.reporting(as_json=as_json):
        reap(client.where(os.environ), really=yes, as_json=as_json)


@app.command("join")
def join_command(
    door: Annotated[str, typer.Argument(metavar="DOOR", help="The string prs1.…, or - to read it from stdin.")],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the seat, instead of an automatic one.")
    ] = None,
    role: Annotated[
        str | None, typer.Option("--role", metavar="ROLE", help="For a named door: the role of its seat.")
    ] = None,
    rotate: Annotated[bool, typer.Option("--rotate", help="Replace the stored token of that board and role.")] = False,
    allow_remote: Annotated[bool, typer.Option("--allow-remote", help="The Central is on another machine.")] = False,
    state_dir: StateDir = None,
) -> None:
    """Take a seat on a board through a door, and keep the door.

    \b
    Examples:
      pursersctl join 'prs1.eyJi…'
      pursersctl join - < door.txt          keeps the secret out of the shell's history
      pursersctl join - --rotate < new.txt
    """
    with output.reporting(prefix=doors.PREFIX):
        doors.join(
            client.where(os.environ),
            os.environ,
            doors.Wish(door=door, name=name, role=role, rotate=rotate, allow_remote=allow_remote, state_dir=state_dir),
        )


@app.command("doors")
def doors_command(as_json: Json = False, state_dir: StateDir = None) -> None:
    """List the stored doors; shows neither tokens nor URLs.

    \b
    Examples:
      pursersctl doors
      pursersctl doors --json | jq -r '.doors[].board'
    """
    with output.reporting(as_json=as_json, prefix=doors.PREFIX):
        doors.show(client.where(os.environ), os.environ, state_dir, as_json=as_json)


@app.command("forget")
def forget_command(
    board: Annotated[str, typer.Option("--board", metavar="BOARD", help="The board of the door.")],
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help="Its role: worker, reviewer, coordinator or orchestrator.")
    ],
    state_dir: StateDir = None,
) -> None:
    """Delete one stored door. Central is not asked and goes on to accept the token until it is revoked there.

    \b
    Examples:
      pursersctl forget --board my-board --role worker
    """
    if role not in doors.ROLES:
        raise typer.BadParameter(f"{role!r} is not one of {', '.join(doors.ROLES)}.", param_hint="--role")
    with output.reporting(prefix=doors.PREFIX):
        doors.forget(client.where(os.environ), os.environ, board, role, state_dir)


doctor_command.add(app)
sweep_command.add(app)
app.add_typer(hosts.app, name="hosts", short_help="Let the hosts on this machine start the shim.")
app.add_typer(local.app, name="local", short_help="Have a board of your own on this machine.")
app.add_typer(service.app, name="service", short_help="Make the daemon a service of this user.")
config.add(app)
completion.add(app)
manual.add(app)


def main() -> None:
    """The entry point."""
    completion.prepare()
    app(prog_name="pursersctl")


if __name__ == "__main__":
    main()
