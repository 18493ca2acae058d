"""`pursersctl local`: a board of one's own, with a Central on this machine that the daemon takes care of."""

import os
import sys
from typing import Annotated

import msgspec
import typer

from pursers_shim import dial
from pursers_shim.paths import Place
from pursersctl import client, lifecycle, output, render_local
from pursersctl.errors import Failed
from pursersctl.usage import Commands, Json
from pursersd import api

UP_TIMEOUT = (
    240.0  # seconds: the daemon's own limits for making an instance, its start and two doors, one after the other
)
DOWN_TIMEOUT = 120.0  # seconds: an `up` that is in progress comes first
TICKET_TIMEOUT = 30.0  # seconds

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="""Have a board of your own, with a Central on this machine; no server is needed.

    \b
    Examples:
      pursersctl local up
      pursersctl local ticket 'Say hello'
      pursersctl local status
      pursersctl local down
    """,
)

Reset = Annotated[bool, typer.Option("--reset", help="Delete the board with all its tickets, and its doors.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before deleting.")]


@app.command("up", short_help="Serve a board on this machine from now on.")
def up_command(
    board: Annotated[str | None, typer.Option("--board", metavar="BOARD", help="Its name, instead of local.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=1024, max=65535, help="Where Central listens, instead of any free port.")
    ] = None,
    reset: Reset = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Serve the local board from now on, also after a restart, and keep a worker's and a reviewer's door to it.

    \b
    Examples:
      pursersctl local up
      pursersctl local up --board tryout --port 8766
      pursersctl local up --reset --yes    begin anew
    """
    with output.reporting(as_json=as_json):
        place = client.where(os.environ)
        if reset:
            confirm_deletion(yes=yes)
        lifecycle.ensure(place, os.environ)
        if reset:
            _down(place, reset=True)
        up(place, api.LocalUp(folder=_folder(place), board=board, port=port), as_json=as_json)


@app.command("down")
def down_command(reset: Reset = False, yes: Yes = False, as_json: Json = False) -> None:
    """End the local board's Central until the next `up`. Its data and its doors stay, unless they are deleted with --reset.

    \b
    Examples:
      pursersctl local down
      pursersctl local down --reset
    """
    with output.reporting(as_json=as_json):
        place = client.where(os.environ)
        if reset:
            confirm_deletion(yes=yes)
        if _is_nothing(place):
            answer = _nothing(place)
            result = msgspec.json.encode(answer)
        else:
            lifecycle.ensure(place, os.environ)
            result, answer = _down(place, reset=reset)
        if as_json:
            output.show_json(result)
        else:
            output.show(render_local.gone(answer))


@app.command("status", short_help="Show whether the board is served, and what went wrong.")
def status_command(as_json: Json = False) -> None:
    """Show whether the local board is served, where, and what went wrong.

    \b
    Examples:
      pursersctl local status
      pursersctl local status --json | jq -r .url
    """
    with output.reporting(as_json=as_json):
        result = client.ask(client.where(os.environ), "local")
        answer = client.read(result, api.LocalStatus)
        if as_json:
            output.show_json(result)
        else:
            output.show(render_local.status(answer, output.width()))


@app.command("ticket", short_help="Create a ticket for whoever takes it; prints its id.")
def ticket_command(
    title: Annotated[str, typer.Argument(metavar="TITLE", help="What is to be done, in a few words.")],
    description: Annotated[str, typer.Option("--description", metavar="TEXT", help="The same in detail.")] = "",
    as_json: Json = False,
) -> None:
    """Create a ticket on the local board, for whoever takes it, and print its id.

    \b
    Examples:
      pursersctl local ticket 'Say hello'
      pursersctl local ticket 'Sort the notes' --description 'By date, the newest first.'
    """
    with output.reporting(as_json=as_json):
        request = api.LocalTicket(title=title, description=description or title)
        params = msgspec.to_builtins(request)
        result = client.ask(client.where(os.environ), "local_ticket", params, timeout=TICKET_TIMEOUT)
        answer = client.read(result, api.LocalTicketMade)
        if as_json:
            output.show_json(result)
        else:
            output.say(answer.ticket)


def up(place: Place, request: api.LocalUp, *, as_json: bool) -> None:
    """Have the running daemon serve the board, and say where it is."""
    result = client.ask(place, "local_up", msgspec.to_builtins(request), timeout=UP_TIMEOUT)
    answer = client.read(result, api.LocalBoard)
    if as_json:
        output.show_json(result)
        return
    output.show(render_local.up(answer))
    for note in answer.notes:
        output.note(note)


def _is_nothing(place: Place) -> bool:
    """Whether there is neither a local board nor a daemon that would know of one: none is started to hear that."""
    return dial.daemon_pid(place) is None and not os.path.lexists(api.local_folder(place.home))


def _nothing(place: Place) -> api.LocalGone:
    folder = api.local_folder(place.home)
    none = api.LocalStatus(
        state="none",
        board=None,
        url=None,
        port=None,
        pid=None,
        up_s=None,
        restarts=0,
        folder=folder,
        log=f"{folder}/central.log",
        last_error=None,
        last_error_s=None,
        next_try_s=None,
    )
    return api.LocalGone(local=none, removed=[], kept=[])


def _down(place: Place, *, reset: bool) -> tuple[bytes, api.LocalGone]:
    result = client.ask(place, "local_down", {"reset": reset}, timeout=DOWN_TIMEOUT)
    return result, client.read(result, api.LocalGone)


def confirm_deletion(*, yes: bool) -> None:
    """Ask whether the board may be deleted, unless that was said already. Raises Failed if not, or if nobody can be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failed("This deletes the local board with all its tickets, and its doors. To confirm add: --yes")
    print("Delete the local board with all its tickets, and its doors? [y/N]: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Failed("Nothing was deleted.")


def _folder(place: Place) -> str:
    from pursersd.state.doors import folder  # here, because it costs as much time as the rest of a command

    return str(folder(os.environ, place.home, os.getcwd()))
