"""`pursersctl join`, `doors` and `forget`: the stored doors, in the lines that `pursers-wait-bridge` prints."""

import getpass
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from pursers_shim.paths import Place
from pursersctl import client, lifecycle, output, printed
from pursersctl.errors import CommandError, Failed, NotRunning
from pursersctl.table import clean
from pursersd import api

PREFIX = "pursersctl: "
"""In front of every error of these commands, as the bridge puts its name."""

ROLES = ("worker", "reviewer", "coordinator", "orchestrator")

JOIN_TIMEOUT = (
    45.0  # seconds: the daemon's own limits for join, probe, lock and taking back a seat, one after the other
)
TELL_TIMEOUT = 2.0  # seconds that the daemon has to notice that a door was forgotten
DOOR_LIMIT = 64 * 1024  # bytes that are read from stdin; a door has about one thousand


@dataclass(frozen=True, slots=True)
class Wish:
    """The arguments of `join`."""

    door: str = field(repr=False)
    name: str | None
    role: str | None
    rotate: bool
    allow_remote: bool
    state_dir: str | None


def join(place: Place, environ: Mapping[str, str], wish: Wish) -> None:
    """Take a seat through a door and keep the door; the daemon does it, and one is started if there is none."""
    from pursersd.rules.door_request import requested  # here, because it costs as much time as the rest of a command

    text = _from_stdin() if wish.door == "-" else wish.door
    with _door_errors():  # a string that is wrong in itself is no reason to start a daemon
        requested(text, name=wish.name, role=wish.role, allow_remote=wish.allow_remote)
    lifecycle.ensure(place, environ)
    request = api.Join(
        door=text,
        folder=str(_folder(place, environ, wish.state_dir)),
        name=wish.name,
        role=wish.role,
        rotate=wish.rotate,
        allow_remote=wish.allow_remote,
        env={name: environ[name] for name in api.JOIN_VARIABLES if name in environ},
    )
    answer = client.read(client.ask(place, "join", msgspec.to_builtins(request), timeout=JOIN_TIMEOUT), api.Joined)
    output.say(f"board={clean(answer.board)}")
    output.say(f"role={clean(answer.role)}")
    output.say(f"seat_name={clean(answer.seat_name)}")
    output.say(f"push={_yes(answer.push)}")
    output.say(f"verifier={answer.verifier}")


def show(place: Place, environ: Mapping[str, str], state_dir: str | None, *, as_json: bool) -> None:
    """Print the stored doors; needs no daemon and changes nothing."""
    from pursersd.state.doors import Doors

    folder = _folder(place, environ, state_dir)
    with _door_errors():
        stored = Doors(folder).load()
    found = printed.DoorList(
        push_mode="poll" if environ.get("PURSERS_WAIT_MODE", "").strip().lower() == "poll" else "push",
        folder=str(folder),
        doors=[
            printed.DoorRow(
                board=door.board,
                role=door.role,
                kid=door.kid,
                exp=door.expires,
                joined_at=door.joined_at,
                seat_names_used=list(door.seat_names_used),
            )
            for door in stored
        ],
    )
    if as_json:
        output.show_json(msgspec.json.encode(found))
        return
    output.say(f"push_mode={found.push_mode}")
    for row in found.doors:
        names = ",".join(row.seat_names_used) or "-"
        output.say(clean(f"board={row.board} role={row.role} kid={row.kid} exp={row.exp} seat_names_used={names}"))


def forget(place: Place, environ: Mapping[str, str], board: str, role: str, state_dir: str | None) -> None:
    """Delete a stored door; a daemon is told if one runs, and none is started."""
    from pursersd.state.doors import Doors

    with _door_errors():
        forgot = Doors(_folder(place, environ, state_dir)).forget(board, role)
    output.say(clean(f"forgot={_yes(forgot)} board={board} role={role}"))
    if forgot:
        _tell(place)


def _tell(place: Place) -> None:
    """Let a running daemon look at the doors now; else it does so before its next call."""
    try:
        client.ask(place, "doors_changed", timeout=TELL_TIMEOUT)
    except NotRunning:
        return
    except CommandError as error:
        output.note(f"{PREFIX}the daemon could not be told at once: {error}")


def _folder(place: Place, environ: Mapping[str, str], state_dir: str | None) -> Path:
    from pursersd.rules.bridge_files import FOLDER_VARIABLE
    from pursersd.state.doors import folder

    if state_dir is None:
        return folder(environ, place.home, os.getcwd())
    return folder({**environ, FOLDER_VARIABLE: state_dir}, None, os.getcwd())


def _from_stdin() -> str:
    """The door that was piped in, or typed without being shown."""
    if sys.stdin.isatty():
        try:
            return getpass.getpass("Door: ").strip()
        except EOFError:
            return ""
    return sys.stdin.buffer.read(DOOR_LIMIT).decode("utf-8", "replace").strip()


@contextmanager
def _door_errors() -> Iterator[None]:
    from pursersd.errors import DoorsError

    try:
        yield
    except DoorsError as error:
        raise Failed(str(error), code=error.code) from None


def _yes(value: bool) -> str:
    return "yes" if value else "no"
