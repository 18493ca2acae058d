"""The commands that look at the daemon while it works: ps, top, events, logs, metrics. All of them only read."""

import os
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer

from pursersctl import client, output
from pursersctl.errors import CommandError
from pursersctl.pick import Sort, Wish
from pursersctl.usage import Json
from pursersd import api

COMPLETION_TIMEOUT = 1.0
"""Seconds that a daemon has to name what may be typed."""


class State(StrEnum):
    """What a conversation may do (typer takes no list of Literals)."""

    WAITING = "waiting"
    WORKING = "working"
    IDLE = "idle"
    DETACHED = "detached"


class Kind(StrEnum):
    """What an event may be."""

    SNAPSHOT = "snapshot"
    CAME = "came"
    WENT = "went"
    STATE = "state"
    WAKE = "wake"
    LEASE = "lease"
    WARNING = "warning"
    CENTRAL = "central"


def _names(field: str) -> Callable[[str], list[str]]:
    """What may be typed for a value: what the running daemon has of it."""

    def complete(incomplete: str) -> list[str]:
        try:
            answer = client.ask(client.where(os.environ), "ps", timeout=COMPLETION_TIMEOUT)
            rows = client.read(answer, api.Ps).seats
        except CommandError:
            return []
        names = {str(getattr(row, field)) for row in rows if getattr(row, field) is not None}
        return sorted(name for name in names if name.startswith(incomplete))

    return complete


Board = Annotated[
    list[str] | None,
    typer.Option(
        "--board", metavar="PATTERN", help="Only those on this board; as here, a * may stand for anything.",
        autocompletion=_names("board"),
    ),
]  # fmt: skip
Seat = Annotated[
    list[str] | None,
    typer.Option("--seat", metavar="PATTERN", help="Only those with this seat.", autocompletion=_names("seat")),
]
Host = Annotated[
    list[str] | None,
    typer.Option(
        "--host", metavar="PATTERN", help="Only those of this kind of host.", autocompletion=_names("host")
    ),
]  # fmt: skip
Role = Annotated[
    list[str] | None,
    typer.Option("--role", metavar="PATTERN", help="Only those in this role.", autocompletion=_names("role")),
]
Every = Annotated[float, typer.Option("--every", metavar="SECONDS", min=0.2, help="Seconds between two drawings.")]


def ps_command(
    of_ended: Annotated[bool, typer.Option("--ended", help="Those that have ended, and why.")] = False,
    watched: Annotated[bool, typer.Option("-w", "--watch", help="Draw the list again and again; q leaves.")] = False,
    every: Every = 2.0,
    wide: Annotated[bool, typer.Option("--wide", help="Every column, and nothing cut.")] = False,
    state: Annotated[
        list[State] | None,
        typer.Option("--state", help="Only those in this state. Each of these options may be given several times."),
    ] = None,
    board: Board = None,
    seat: Seat = None,
    host: Host = None,
    role: Role = None,
    sort: Annotated[
        Sort | None, typer.Option("--sort", help="By what; for, age, lag and wakes begin with the largest.")
    ] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="The other way round.")] = False,
    as_json: Json = False,
) -> None:
    """List the conversations: who waits, works or idles, on which board, and what it holds.

    \b
    Examples:
      pursersctl ps
      pursersctl ps --watch
      pursersctl ps --wide | less -S
      pursersctl ps --state working --sort left
      pursersctl ps --board 'web-*' --host claude-code
      pursersctl ps --ended
      pursersctl ps --json | jq -r '.seats[] | select(.state == "waiting").seat'
    """
    from pursersctl import ps  # here and below: what a command needs costs the others nothing

    wish = Wish(
        states=tuple(state or ()),
        boards=tuple(board or ()),
        seats=tuple(seat or ()),
        hosts=tuple(host or ()),
        roles=tuple(role or ()),
        sort=sort,
        reverse=reverse,
    )
    if of_ended and (state or watched or wide or sort in ("left", "lag", "wakes", "state")):
        raise typer.BadParameter("--ended goes with none of --state, --watch, --wide, and sorts by other things.")
    if watched and as_json:
        raise typer.BadParameter("--watch is for people. A program uses: pursersctl events --json")
    with output.reporting(as_json=as_json):
        place = client.where(os.environ)
        if watched:
            ps.watch(place, wish, wide=wide, every_s=every)
        elif of_ended:
            ps.ended(place, wish, as_json=as_json)
        else:
            ps.ps(place, wish, as_json=as_json, wide=wide)


def top_command(every: Every = 1.0) -> None:
    """Show the daemon at work: its Centrals, how long calls and wakes take, and who does what. q leaves.

    \b
    Examples:
      pursersctl top
      pursersctl top --every 5
    """
    from pursersctl import top

    with output.reporting():
        top.top(client.where(os.environ), every)


def events_command(
    kind: Annotated[
        list[Kind] | None, typer.Option("--kind", help="Only events of this kind; may be given several times.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on each line (docs/json.md).")] = False,
) -> None:
    """Print what happens: first how things are, then who comes, goes, waits, wakes, and what goes wrong.

    Goes on over restarts of the daemon, with a new snapshot, until Ctrl-C.

    \b
    Examples:
      pursersctl events
      pursersctl events --kind warning --kind central
      pursersctl events --json | jq -r 'select(.event == "wake") | "\\(.seat) \\(.wake_s)"'
    """
    from pursersctl import events

    with output.reporting(as_json=as_json):
        events.events(client.where(os.environ), as_json=as_json, kinds=tuple(kind or ()))


def logs_command(
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on with what is added.")] = False,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="How many of the last lines.")] = 50,
    which: Annotated[
        str | None,
        typer.Option(
            "--conversation",
            metavar="ID",
            help="Only what concerns this one: its id or the beginning of it, its shim's pid, or its seat's name.",
            autocompletion=_names("conversation"),
        ),
    ] = None,
) -> None:
    """Print the end of the daemon's log.

    \b
    Examples:
      pursersctl logs
      pursersctl logs -n 500 | grep WARNING
      pursersctl logs -f
      pursersctl logs --conversation bench-w1 -f
    """
    from pursersctl import logs

    with output.reporting():
        place = client.where(os.environ)
        conversation = None if which is None else logs.meant(place, which)
        logs.logs(api.log_file(place.home), lines, follow, conversation)


def metrics_command(
    file: Annotated[
        str | None, typer.Option("--file", metavar="FILE", help="Replace this file by them, as a whole.")
    ] = None,
) -> None:
    """Print what the daemon counts, as OpenMetrics text. Without a daemon that is: pursersd_up 0

    \b
    Examples:
      pursersctl metrics
      pursersctl metrics | grep wake_latency
      pursersctl metrics --file /var/lib/node_exporter/pursersd.prom    for a node exporter, once a minute
    """
    from pursersctl import metrics

    with output.reporting():
        metrics.metrics(client.where(os.environ), file)


def add(app: typer.Typer) -> None:
    """Declare the commands."""
    app.command("ps", short_help="List the conversations, or those that have ended.")(ps_command)
    app.command("top", short_help="Show the daemon at work, as it goes on.")(top_command)
    app.command("events", short_help="Print what happens, for people and for programs.")(events_command)
    app.command("logs")(logs_command)
    app.command("metrics")(metrics_command)
