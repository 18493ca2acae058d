"""A conversation that follows boards for its digests: since when, with which seats, and how its host is told of news.

It begins with the first digest, acknowledgement or watch, with a subscription to the digest, or at once for an
orchestrator (bridge.md §5.1), and goes on as long as the conversation, over each restart of the daemon.
"""

import logging
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated

from pursersd.central.account import Account, charged_to
from pursersd.central.pool import PoolKey
from pursersd.central.turns import on_behalf_of
from pursersd.errors import (
    ConfigurationError,
    Forbidden,
    Overloaded,
    PursersError,
    ToolFailed,
    Unauthenticated,
    UnknownBoard,
    Unreachable,
)
from pursersd.feed.centrals import Central
from pursersd.feed.place import Place
from pursersd.ids import digest_uri
from pursersd.rules import digest_file, registry, selection
from pursersd.rules.backoff import delays
from pursersd.rules.denials import RETRY_S, DenialKey, Denials
from pursersd.rules.digest_record import Changed, Record
from pursersd.seats.seat import Seat, SeatRequest, SeatTaken, Source
from pursersd.settings import Settings
from pursersd.state.digests import DigestFile

log = logging.getLogger(__name__)

FIRST_RETRY, LAST_RETRY = 0.5, 30.0
"""Seconds between attempts to follow (bridge.md §5.1)."""

SETUP_LIMIT = 10.0
"""Longest time that a digest waits for its seats, in seconds."""

GRACE = 1.0
"""Seconds until an orchestrator that has called nothing takes its seats: a client may only be looking what is there."""

FOLLOWS, SHOWN = "follows_digest", "digest_shown"
"""What the shim remembers: that its conversation follows, and up to where its model has been shown each board."""


class Renewal(Protocol):
    """The credential of a conversation, which may be replaced (see configuration.py)."""

    @property
    def key(self) -> PoolKey | None:
        """What the calls of this moment are sent with."""

    def until_renewed(self) -> AbstractContextManager[None]:
        """The block is cancelled, quietly, when the credential is replaced."""


class Whose(Protocol):
    """What it needs of its conversation."""

    id: str
    tasks: TaskGroup | None
    kept: dict[str, object]

    @property
    def configuration(self) -> Renewal:
        """Says when the credential is replaced."""

    @property
    def settings(self) -> Settings:
        """What the conversation is at the moment."""

    @property
    def denials(self) -> Denials:
        """The boards that refused somebody lately."""

    def account(self) -> Account | None:
        """Who pays for its reads."""

    def seat_request(self, board: str) -> SeatRequest:
        """Its seat on a board."""

    async def connect(self) -> Central:
        """Its Central."""

    async def join(self, *, source: Source) -> tuple[Central, Seat]:
        """Its Central and its home seat."""


@dataclass(frozen=True, slots=True)
class View:
    """What it follows at the moment."""

    central: Central
    home: Seat
    places: dict[str, Place]
    """By board, the home board's first."""


class Following:
    """The following of one conversation; its tasks run in those of the conversation."""

    def __init__(self, conversation: Whose, file: Callable[[str], DigestFile] | None = None) -> None:
        """`file` gives the file with the records of a home board."""
        self.bus = InMemorySubscriptionBus()
        """Carries news to the host's open subscriptions."""
        self.view: View | None = None
        self.trouble: PursersError | None = None
        """Why it follows nothing, or did the last time."""
        self._conversation = conversation
        self._file = file
        self._session: ServerSession | None = None
        """The newest link's; a client of the era before subscriptions is told of news through it."""
        self._known: tuple[PoolKey, Seat] | None = None
        """The home seat that Central has confirmed last, and with which credential."""
        self._is_running = False
        self._is_over = False
        self._again = anyio.Event()
        self._hurry = anyio.Event()
        self._tried = anyio.Event()
        self._news: set[str] = set()
        self._rung = anyio.Event()

    def __repr__(self) -> str:
        return f"<Following {list(self.view.places) if self.view else self.trouble}>"

    # --- when it begins ---------------------------------------------------------------------------------------------

    def begin(self, *, grace_s: float = 0.0, source: Source = "model") -> None:
        """Follow from now on; of no effect when it does, or when the conversation has ended."""
        tasks = self._conversation.tasks
        if self._is_running or tasks is None:
            return
        self._is_running = True
        if not grace_s:
            self._conversation.kept[FOLLOWS] = True
        tasks.start_soon(self._run, grace_s, source)

    def resume(self) -> None:
        """The conversation begins, maybe again after an earlier daemon: follow if it did then."""
        if self._conversation.kept.get(FOLLOWS):
            self.begin(source="keepalive")

    def heard(self, method: str, session: ServerSession) -> None:
        """A message of the host came."""
        if method != "initialize":  # nothing may be told before the handshake is over
            self._session = session
        if method == "notifications/initialized":
            if self._is_running:
                self.missed()  # on the link before
            elif self._conversation.settings.role == "orchestrator":
                self.begin(grace_s=GRACE)

    # --- what was shown ---------------------------------------------------------------------------------------------

    @property
    def shown(self) -> dict[str, int]:
        """Up to where its model has been shown each board, also by an earlier daemon."""
        shown = self._conversation.kept.get(SHOWN)
        return {b: n for b, n in shown.items() if isinstance(n, int)} if isinstance(shown, dict) else {}

    def show(self, cursors: Mapping[str, int]) -> None:
        """Its model is shown these boards up to here."""
        before = self.shown
        self._conversation.kept[SHOWN] = before | {b: max(n, before.get(b, 0)) for b, n in cursors.items()}

    # --- what tools ask ---------------------------------------------------------------------------------------------

    async def current(self) -> View | None:
        """What it follows, after an attempt to begin if it follows nothing; None if that fails, `trouble` says why."""
        if self.view is not None:
            with suppress(PursersError):
                await self._conversation.connect()  # its credential may have been replaced
            self._again.set()  # a board that refused may let us in by now
        if self.view is None or self.view.central.pool.key != self._conversation.configuration.key:
            self._tried = anyio.Event()
            self.begin()
            self._hurry.set()
            with anyio.move_on_after(SETUP_LIMIT):
                if self._is_running:
                    await self._tried.wait()
        return self.view

    async def record(self) -> Record:
        """What its identity has acknowledged and watches; nothing as long as Central has not said who that is.

        Raises StateError.
        """
        home = self._home
        if home is None or self._file is None:
            return Record()
        file = self._file(home.board)
        return await to_thread.run_sync(file.load, self._identity(home), home.agent_id)

    async def change(self, change: Callable[[Record], Changed]) -> dict[str, object]:
        """Change the record of its identity; returns the result. Raises StateError, and what prevents it from having one."""
        home = self._home
        if home is None:
            raise self.trouble or Unreachable("Central did not say in time who this is. Try again.")
        if self._file is None:
            raise ConfigurationError("this daemon keeps no records")
        file = self._file(home.board)
        work = partial(file.change, self._identity(home), home.agent_id, change)
        return (await to_thread.run_sync(work))[1]

    @property
    def _home(self) -> Seat | None:
        """Who it is: not what it was with another credential."""
        key = self._conversation.configuration.key
        return self._known[1] if self._known is not None and self._known[0] == key else None

    def _identity(self, home: Seat) -> str:
        return digest_file.identity(self._conversation.settings.url, home.agent_id)

    # --- Follower ---------------------------------------------------------------------------------------------------

    def news(self, boards: frozenset[str]) -> None:
        """See feed.place.Follower."""
        self._news |= boards
        self._rung.set()

    def missed(self) -> None:
        """The host may not have been told of news."""
        self.news(frozenset([self._conversation.settings.board]))

    def registry_changed(self) -> None:
        """See feed.place.Follower."""
        self._again.set()

    def ended(self) -> None:
        """See feed.place.Follower."""
        self._is_over = True
        self._again.set()

    # --- the tasks --------------------------------------------------------------------------------------------------

    async def _run(self, grace_s: float, source: Source) -> None:
        if grace_s:
            with anyio.move_on_after(grace_s):
                await self._hurry.wait()
            self._conversation.kept[FOLLOWS] = True
        try:
            with charged_to(self._conversation.account()), on_behalf_of(self._conversation.id):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._tell)
                    await self._follow_on(source)
        except Exception:  # a defect of ours: the rest of the conversation goes on, and the next digest begins again
            log.exception("%s: its following of boards broke", self._conversation.id)
        finally:
            self._is_running = False

    async def _follow_on(self, source: Source) -> None:
        """Follow, and begin again with each other credential, registry or Central, and after each failure."""
        pauses = _retries()
        while True:
            self._again, self._hurry, self._is_over = anyio.Event(), anyio.Event(), False
            pause: float | None = None
            try:
                with self._conversation.configuration.until_renewed():
                    await self._follow(source)
                pauses = _retries()
            except (Unauthenticated, Forbidden, ConfigurationError, UnknownBoard, ToolFailed) as error:
                self._failed(error)
                pause = RETRY_S
            except PursersError as error:
                self._failed(error)
                pause = next(pauses)
            source = "keepalive"
            if pause is not None:
                with anyio.move_on_after(pause):
                    await self._hurry.wait()

    def _failed(self, error: PursersError) -> None:
        if str(error) != str(self.trouble):
            log.info("%s follows no boards: %s", self._conversation.id, error)
        self.trouble = error
        self._tried.set()

    async def _follow(self, source: Source) -> None:
        """Follow until the registry names other boards, one lets us in, or the Central is closed. Raises PursersError."""
        central, home = await self._conversation.join(source=source)
        self._known = central.pool.key, home
        boards = await self._boards(central, home)
        found = {board: await self._seat(central, board, source) for board in boards[1:]}
        refused = [board for board, seat in found.items() if seat is None]
        seats = [home, *(seat for seat in found.values() if seat is not None)]
        with central.digest.follow(self, home.board, seats) as places:
            self.view, self.trouble = View(central, home, places), None
            self._tried.set()
            try:
                while not self._is_over:
                    await self._again.wait()
                    self._again = anyio.Event()
                    if not self._is_over and await self._is_outdated(central, home, boards, refused):
                        return
            finally:
                self.view = None

    async def _is_outdated(self, central: Central, home: Seat, boards: tuple[str, ...], refused: list[str]) -> bool:
        try:
            if await self._boards(central, home) != boards:
                return True
        except (Unreachable, Overloaded) as error:
            log.info("%s: the registry cannot be read: %s", self._conversation.id, error)
        return any([await self._seat(central, board, "keepalive") is not None for board in refused])

    async def _boards(self, central: Central, home: Seat) -> tuple[str, ...]:
        """The home board, then those that its registry names (bridge.md §5.1); without one the home board alone.

        Raises Unreachable and Overloaded.
        """
        try:
            stored = await central.digest.registry(home.board)
        except (Unreachable, Overloaded):
            raise
        except PursersError:
            return (home.board,)
        found = registry.active_boards(stored, home.board)
        return selection.spanned(found, home.board, self._conversation.settings.boards_filter)

    async def _seat(self, central: Central, board: str, source: Source) -> Seat | None:
        """Its seat on another board; None if that refuses, which is remembered (bridge.md §2.8)."""
        request, denials = self._conversation.seat_request(board), self._conversation.denials
        key = DenialKey(central.pool.key.url, central.pool.key.token.fingerprint, request.role, board)
        if denials.refusal(key) is not None:
            return None
        try:
            seat = await central.seats.join(request, self._conversation.id, source=source)
        except (ToolFailed, UnknownBoard, SeatTaken) as error:
            denials.remember(key, error)
            log.info("%s does not follow %s: %s", self._conversation.id, board, error)
            return None
        denials.forget(key)
        return seat

    async def _tell(self) -> None:
        """Tell the host, in the words of either era, as fast as it listens."""
        while True:
            await self._rung.wait()
            self._rung = anyio.Event()
            boards, self._news = self._news, set()
            home = digest_uri(self._conversation.settings.board)
            for uri in dict.fromkeys([home, *(digest_uri(board) for board in sorted(boards))]):
                await self.bus.publish(ResourceUpdated(uri))
            if self._session is not None:
                # One era's clients have not asked for it (bridge.md §1.2); of the other the SDK drops it.
                await self._session.send_resource_updated(home)


def _retries() -> Iterator[float]:
    return delays(FIRST_RETRY, LAST_RETRY, random.random)
