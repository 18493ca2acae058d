"""Names of conversations that came through a stored door: chosen when a seat is first needed, then kept (bridge.md §6.3)."""

import logging
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import anyio
from anyio import to_thread

from pursersd.conversation.identity import ProcessIdentity
from pursersd.rules import door_list
from pursersd.rules import names as rules
from pursersd.rules.door import Door
from pursersd.rules.names import NOBODY, DoorId, Entry, Place, Wish
from pursersd.settings import Settings
from pursersd.state.doors import Doors
from pursersd.state.names import Names

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Applicant:
    """The conversation that wants a name."""

    conversation: str
    shim: ProcessIdentity
    place: Place
    doors: Doors | None
    """Where its door is stored."""


class Naming:
    """Gives names, one at a time, and remembers which seats are ours (it is the `Held` of seats/first.py)."""

    def __init__(self, names: Names, *, hostname: Callable[[], str] = socket.gethostname) -> None:
        self._names = names
        self._hostname = hostname
        self._given: dict[str, tuple[DoorId, str]] = {}
        """What each conversation has now, by its id."""
        self._one_at_a_time = anyio.Lock()

    async def name(self, applicant: Applicant, settings: Settings, taken: Callable[[], Iterable[str]]) -> str | None:
        """The name of a conversation, the same at every call; `taken` tells those of the others, and is asked only if a name
        is to be chosen. None leaves it to the settings, which have one when there is no stored door behind them.

        A new name is noted in the door's file, so that a bridge beside us does not take it, and in ours. Raises DoorsError
        when the door's file cannot be changed.
        """
        door = settings.door
        if not settings.is_door_mode or door is None:
            return None
        identity = DoorId(settings.url, settings.board, door.role)
        async with self._one_at_a_time:
            name = self._present(applicant.conversation, identity, settings.agent_name)
            if name is None:
                used = _used(applicant.doors, door)
                wish = Wish(identity, applicant.place, applicant.conversation)
                name = settings.agent_name or self._choose(wish, used, taken())
                if applicant.doors is not None and name not in used:
                    await to_thread.run_sync(applicant.doors.reserve, door.board, door.role, name)
                await self._remember(identity, name, applicant, chosen=settings.agent_name is not None)
            return name

    async def adopt(self, url: str, board: str, role: str, name: str, *, chosen: bool) -> None:
        """A seat was joined through a door before there is a conversation: it is ours. The first conversation that needs a
        name gets this one, unless its user has `chosen` it: then it is for those whose settings name it."""
        entry = Entry(DoorId(url, board, role), name, place=None if chosen else NOBODY, held=True)
        async with self._one_at_a_time:
            await to_thread.run_sync(self._names.remember, entry)

    def forget(self, conversation: str) -> None:
        """A conversation is over. Its name stays remembered for who comes next."""
        self._given.pop(conversation, None)

    # --- seats.first.Held -------------------------------------------------------------------------------------------

    def is_held(self, url: str, board: str, name: str) -> bool:
        """Whether the seat is ours, or may be."""
        return self._names.is_held(url, board, name)

    async def note(self, url: str, board: str, name: str, *, held: bool, foreign: bool = False) -> None:
        """Note what Central said of a seat."""
        async with self._one_at_a_time:
            await to_thread.run_sync(partial(self._names.note, url, board, name, held=held, foreign=foreign))

    # --- inside -----------------------------------------------------------------------------------------------------

    def _present(self, conversation: str, identity: DoorId, wanted: str | None) -> str | None:
        """The name that the conversation has already, unless it is wrong by now: of another door, or somebody else's."""
        door, name = self._given.get(conversation, (None, ""))
        if door != identity or wanted not in (None, name):
            return None
        known = self._known(identity, name)
        return None if wanted is None and known is not None and known.foreign else name

    async def _remember(self, identity: DoorId, name: str, applicant: Applicant, *, chosen: bool) -> None:
        known = self._known(identity, name)
        before = known.place if known is not None else None
        # One that comes back after a crash may not have said yet which host it is: its name stays where it was given.
        is_back = known is not None and known.conversation == applicant.conversation
        entry = Entry(
            identity,
            name,
            place=before if chosen or is_back else applicant.place,
            conversation=applicant.conversation,
            shim=(applicant.shim.pid, applicant.shim.started),
            held=known is not None and known.held,
        )
        await to_thread.run_sync(self._names.remember, entry)
        self._given[applicant.conversation] = identity, name
        log.info("%s is %s on board %s", applicant.conversation, name, identity.board)

    def _known(self, identity: DoorId, name: str) -> Entry | None:
        return next((entry for entry in self._names.entries if (entry.door, entry.name) == (identity, name)), None)

    def _choose(self, wish: Wish, used: Iterable[str], taken: Iterable[str]) -> str:
        # After a restart of the daemon the shims of its conversations live on and are expected back.
        expected = {
            entry.name
            for entry in self._names.entries
            if entry.door == wish.door and entry.shim is not None and ProcessIdentity(*entry.shim).is_alive
        }
        return rules.choose(
            self._names.entries,
            wish,
            taken={*taken, *expected},
            used=used,
            hostname=self._hostname(),
            now=self._names.clock(),
        )


def _used(doors: Doors | None, door: Door) -> tuple[str, ...]:
    """The names that the door's file has seen by now: bridges may have taken some since the settings were resolved."""
    stored = door_list.find(doors.load(), door.board, door.role) if doors is not None else None
    return (stored or door).seat_names_used
