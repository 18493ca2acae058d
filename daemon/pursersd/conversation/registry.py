"""All conversations of the daemon: who is there, since when, and who is gone."""

import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
from anyio.abc import TaskGroup, TaskStatus

from pursersd.api import ConversationStatus, SeatRow
from pursersd.api.events import Came, Went
from pursersd.conversation.conversation import Conversation
from pursersd.conversation.departures import Departures
from pursersd.conversation.hello import Resume
from pursersd.conversation.identity import ProcessIdentity
from pursersd.conversation.lineage import Lineage
from pursersd.conversation.naming import Applicant, Naming
from pursersd.conversation.recovery import find_leases
from pursersd.conversation.surroundings import Surroundings
from pursersd.conversation.watchdog import wait_for_end
from pursersd.conversation.witness import Witness
from pursersd.events import Events
from pursersd.feed.centrals import Centrals
from pursersd.ids import new_conversation_id
from pursersd.log import concerning
from pursersd.rules.configuration import DEFAULTS
from pursersd.rules.door import Door
from pursersd.rules.names import Place
from pursersd.rules.windows import LW_STDIO
from pursersd.state.doors import Doors
from pursersd.state.names import Names
from pursersd.timings import Timings

log = logging.getLogger(__name__)

REATTACH = DEFAULTS.resume_grace_s
"""Seconds that a conversation whose shim still lives may be without a link."""


class Conversations:
    """The registry; `run()` owns the tasks of every conversation."""

    def __init__(self, centrals: Centrals, naming: Naming | None = None) -> None:
        self._centrals = centrals
        self._naming = naming or Naming(Names(None))
        self._all: dict[str, Conversation] = {}
        self._tasks: TaskGroup | None = None
        self._empty_since = time.monotonic()
        self.departures = Departures()
        self.timings = Timings()
        self.events = Events()
        self.reattach_s = REATTACH
        """Seconds that a shim has to come back."""
        self.on_end: Callable[[Conversation], Awaitable[None]] = _nobody
        """Told when nobody is behind a conversation any more, so that its link and its shim end too."""

    def __len__(self) -> int:
        return len(self._all)

    @property
    def idle_s(self) -> float:
        """Seconds without any conversation; 0 while there is one."""
        return 0.0 if self._all else time.monotonic() - self._empty_since

    def await_first(self) -> None:
        """Whoever started us can reach us from now on: idleness begins here, however long the start took."""
        self._empty_since = time.monotonic()

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Serve until cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            await anyio.sleep_forever()

    def open(self, lineage: Lineage, surroundings: Surroundings, resume: Resume | None) -> Conversation:
        """The conversation of a shim that said hello: the one it names, if it is that very shim's, else a new one.

        `resume` is what a shim knows of its earlier link. After a daemon's death nobody here knows the id; the shim's word is
        taken, with its epoch as the high-water mark.
        """
        named = resume.conversation if resume else ""
        known = self._all.get(named)
        if known is None or known.lineage.shim != lineage.shim or known.ended.is_set():
            name = named if named and known is None else new_conversation_id()
            known = self._begin(name, lineage, surroundings, resume)
        if resume:
            known.kept = resume.kept | known.kept
        known.resumed_ages = {pending.id: pending.age_s for pending in resume.pending} if resume else {}
        return known

    def _begin(self, name: str, lineage: Lineage, surroundings: Surroundings, resume: Resume | None) -> Conversation:
        conversation = self._all[name] = Conversation(
            name,
            lineage,
            surroundings,
            self._centrals,
            name=partial(self._name, surroundings.doors),
            witness=Witness(self.timings, self.events),
        )
        assert self._tasks is not None, "Conversations.run() is not running"
        has_spoken = resume is not None and resume.idle_s is not None
        if resume and resume.conversation:
            conversation.link_epoch = resume.link_epoch
        if resume and resume.idle_s is not None:
            conversation.holder.resumed(max(0.0, resume.idle_s))
        with concerning(name):
            self._tasks.start_soon(self._live, conversation, has_spoken)
        log.info("%s began: host %s, shim %s", name, lineage.host, lineage.shim)
        for note in conversation.settings.notes:
            log.info("%s: %s", name, note)
        self.events.tell(lambda at: Came(at=at, row=conversation.row(0)))
        return conversation

    def detached(self, conversation: Conversation, epoch: int) -> None:
        """The link of this epoch ended: give the shim time to come back, if it lives."""
        conversation.detach(epoch)
        if conversation.state != "detached":
            return
        if not conversation.lineage.shim.is_alive:
            conversation.end("the shim ended")
        elif conversation.tasks is not None:
            conversation.tasks.start_soon(self._expect_back, conversation, epoch)

    async def expect(self, door: Door, name: str, *, automatic: bool) -> None:
        """A seat was taken through a door, for a conversation that will come."""
        await self._naming.adopt(door.url, door.board, door.role, name, chosen=not automatic)

    def doors_changed(self) -> int:
        """Somebody changed stored doors: let every conversation look at its own; returns how many have another credential."""
        return sum([conversation.follow_doors() for conversation in self._all.values()])

    def all(self) -> list[Conversation]:
        """Every conversation."""
        return list(self._all.values())

    def rows(self) -> list[SeatRow]:
        """One row per conversation."""
        sharing = self._sharing()
        return [c.row(sharing[c.seat.uri] if c.seat else 0) for c in self._all.values()]

    def status(self, which: str) -> list[ConversationStatus]:
        """The conversations that are meant by `which`: an id, its unique beginning, a shim's pid, or a seat's name."""
        return [found.status(self._sharing()[found.seat.uri] if found.seat else 0) for found in self._meant(which)]

    def _meant(self, which: str) -> list[Conversation]:
        if which in self._all:
            return [self._all[which]]
        begins = [c for name, c in self._all.items() if which and name.startswith(which)]
        return begins or [c for c in self._all.values() if which in (str(c.lineage.shim.pid), c.seat_name)]

    def _sharing(self) -> Counter[str]:
        return Counter(seat.uri for c in self._all.values() for seat in c.seats)

    async def _name(self, doors: Doors | None, conversation: Conversation) -> str | None:
        place = Place(conversation.host, conversation.lineage.cwd)
        applicant = Applicant(conversation.id, conversation.lineage.shim, place, doors)

        def taken() -> set[str]:
            others = (other for other in self._all.values() if other is not conversation and other.is_expected)
            return {other.agent_name for other in others}

        return await self._naming.name(applicant, conversation.settings, taken)

    async def _live(self, conversation: Conversation, had_spoken: bool) -> None:
        """The conversation's lifetime: from its first hello until nobody is behind it."""
        try:
            async with anyio.create_task_group() as tasks:
                conversation.tasks = tasks
                conversation.following.resume()
                lineage = conversation.lineage
                tasks.start_soon(self._watch, conversation, lineage.shim, "the shim ended")
                for process in (*lineage.wrappers, *([lineage.host] if lineage.host is not None else [])):
                    tasks.start_soon(self._watch, conversation, process, "the host ended")
                if had_spoken:
                    tasks.start_soon(find_leases, conversation)
                await conversation.ended.wait()
                conversation.tasks = None
                tasks.cancel_scope.cancel()
            await self.on_end(conversation)
        finally:
            self._bury(conversation)

    async def _watch(self, conversation: Conversation, process: ProcessIdentity, reason: str) -> None:
        await wait_for_end(process)
        conversation.end(reason)

    async def _expect_back(self, conversation: Conversation, epoch: int) -> None:
        await anyio.sleep(self.reattach_s)
        if conversation.link_epoch == epoch and conversation.state == "detached":
            how = f"cut, because {conversation.cut_reason}," if conversation.cut_reason else "lost"
            conversation.end(f"the link was {how} and did not come back")

    def _bury(self, conversation: Conversation) -> None:
        """Leave its seats to those who still use them and let go of its Central."""
        del self._all[conversation.id]
        if conversation.end_reason is not None:
            self.departures.add(conversation.row(0), conversation.lineage, conversation.end_reason)
        if not self._all:
            self._empty_since = time.monotonic()
        conversation.tasks = None
        conversation.holder.leave()
        # When it is the daemon that ends, the shim has the answer or asks the next daemon.
        if conversation.end_reason is not None and (lost := conversation.requests.undelivered):
            self._centrals.windows.opened(LW_STDIO, f"{conversation.id}, {conversation.end_reason}", lost)
        self._centrals.release(conversation.id)
        self._naming.forget(conversation.id)
        log.info("%s ended: %s", conversation.id, conversation.end_reason or "the daemon stops")
        if (reason := conversation.end_reason) is not None:
            self.events.tell(
                lambda at: Went(
                    at=at,
                    conversation=conversation.id,
                    seat=conversation.seat_name,
                    board=conversation.board,
                    host=conversation.host,
                    reason=reason,
                )
            )


async def _nobody(conversation: Conversation) -> None:
    """Nobody to tell."""
