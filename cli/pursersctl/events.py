"""`pursersctl events`: what the daemon does, from a snapshot on, over its restarts."""

import select
import sys

import msgspec

from pursers_shim.paths import Place
from pursersctl import client, output, render_events
from pursersctl.errors import Busy, NotRunning
from pursersd.api.events import Event

LOOK = 0.5  # seconds between two looks for the next daemon

GONE = "pursersd has gone. Its events go on when there is one again."


def events(place: Place, *, as_json: bool, kinds: tuple[str, ...]) -> None:
    """Print everything that happens, until the reader is gone; start nothing. `kinds`: only these, all if it is empty.

    Raises NotRunning if there is no daemon to begin with, Failed when we were too slow for it.
    """
    try:
        following = client.Following(place, "events")
        while True:
            try:
                if not _follow(following, as_json=as_json, kinds=kinds):
                    return
            finally:
                following.close()
            output.note(GONE)
            successor = _next(place)
            if successor is None:
                return
            following = successor
    except KeyboardInterrupt:
        pass  # the way to leave


def _follow(following: client.Following, *, as_json: bool, kinds: tuple[str, ...]) -> bool:
    """Print what one daemon tells. True when that daemon has gone, False when nobody reads us any more."""
    while True:
        try:
            for result in following.results():
                _show(result, as_json=as_json, kinds=kinds)
        except EOFError:
            return True
        if not _is_ready(following):
            return False


def _show(result: bytes, *, as_json: bool, kinds: tuple[str, ...]) -> None:
    kind = msgspec.json.decode(result).get("event")
    if kinds and kind not in kinds:
        return
    if as_json:
        output.write(result.decode() + "\n")
        return
    try:
        event = msgspec.json.decode(result, type=Event)
    except msgspec.ValidationError:
        output.say(f"(an event {kind!r} of a newer pursersd; see it with --json)")
        return
    output.show(render_events.event(event))


def _next(place: Place) -> client.Following | None:
    """The next daemon, once there is one; None when nobody reads us any more."""
    while True:
        if output.reader_is_gone(LOOK):
            return None
        try:
            return client.Following(place, "events")
        except (NotRunning, Busy):
            continue


def _is_ready(following: client.Following) -> bool:
    """Wait for the daemon; False as soon as nobody can read our stdout any more."""
    poll = select.poll()
    poll.register(following.fileno(), select.POLLIN)
    if not sys.stdout.isatty():  # a terminal that goes away sends SIGHUP, and macOS cannot poll one
        poll.register(sys.stdout.fileno(), 0)
    return all(fd == following.fileno() for fd, _ in poll.poll())
