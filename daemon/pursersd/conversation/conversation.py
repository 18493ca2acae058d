"""A conversation: one chat in a host. It outlives its links; everything the bridge kept per process is a field here."""

import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

import anyio
from anyio.abc import TaskGroup

from pursersd.api import POLL_WANTED, ConversationStatus, Delivery, SeatRow, State
from pursersd.central.account import Account, charged_to
from pursersd.central.turns import on_behalf_of
from pursersd.conversation.configuration import Configuration
from pursersd.conversation.description import leases_of, seats_of, settings_of
from pursersd.conversation.following import Following
from pursersd.conversation.lineage import Lineage
from pursersd.conversation.requests import Requests
from pursersd.conversation.surroundings import Surroundings
from pursersd.conversation.witness import Witness
from pursersd.errors import CentralError, ConfigurationError, Forbidden, Unauthenticated
from pursersd.feed.centrals import Central, Centrals
from pursersd.ids import RequestId
from pursersd.lanes import Lanes
from pursersd.rules.capabilities import frozen
from pursersd.rules.denials import Denials
from pursersd.rules.suppression import Suppression, SyntheticGuard
from pursersd.seats.holder import Holder
from pursersd.seats.seat import Seat, SeatRequest, Source
from pursersd.settings import DEFAULT_NAME, Settings
from pursersd.waits.board import Memory
from pursersd.waits.watched import Watched
from pursersd.windows import Windows

log = logging.getLogger(__name__)


class Conversation:
    """State of one conversation. Its tasks (acknowledgements, watchdogs) run in `tasks`, which its registry owns."""

    def __init__(
        self,
        conversation_id: str,
        lineage: Lineage,
        surroundings: Surroundings,
        centrals: Centrals,
        *,
        name: Callable[["Conversation"], Awaitable[str | None]] | None = None,
        witness: Witness | None = None,
    ) -> None:
        """`name` finds the name that it needs when its settings have none."""
        settings = surroundings.resolve()
        self.id = conversation_id
        self.lineage = lineage
        self.witness = witness or Witness()
        self.configuration = Configuration(settings, surroundings.resolve, surroundings.doors)
        self._name = name or _no_name
        self._given_name: str | None = None
        """The name that was found for it when it needed one."""
        self.link_epoch = 0
        self.client_name: str | None = None
        self.last_tool: str | None = None
        self.resumed_ages: dict[RequestId, float] = {}
        """Seconds that requests had been pending when their link came back, by the host's id, until they are taken up again."""
        self.requests = Requests()
        """Those on its newest link."""
        self.lanes = Lanes()
        self.tasks: TaskGroup | None = None
        self.ended = anyio.Event()
        self.end_reason: str | None = None
        self.holder = Holder(
            conversation_id, idle_limit=settings.idle_limit_s, downgrades=settings.host.keeps_closed_windows
        )
        """What the keeping of leases knows of it."""
        self.kept: dict[str, object] = {}
        """What its shim remembers for it over the end of this daemon."""
        self.following = Following(self, surroundings.digests)
        self.cut_reason: str | None = None
        """Why the daemon gave its last link up; None while it has one, or lost it otherwise."""
        self._memory = Memory(Suppression(settings.resurface_s), SyntheticGuard(settings.resurface_s))
        self._centrals = centrals
        self._stats = surroundings.stats
        self.keyring = surroundings.keyring
        self._seat: Seat | None = None
        self._seats: dict[str, Seat] = {}
        """Every seat that it took, by URI."""
        self._watched: list[Watched] = []
        """The boards of its last wait that got so far."""
        self._attached = False
        self._created = time.monotonic()
        self._state: State = "idle"
        self._state_since = self._created
        self._acknowledging = 0

    def __repr__(self) -> str:
        return f"<Conversation {self.id} {self.state} seat={self.seat_name or '–'} shim={self.lineage.shim.pid}>"

    # --- what it is doing -------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """Waiting beats working: a model that waits does nothing else that matters to an operator."""
        if not self._attached:
            return "detached"
        if self.waits:
            return "waiting"
        return "working" if self.is_busy else "idle"

    @property
    def seat(self) -> Seat | None:
        """The seat it took last; None before Central confirmed one."""
        return self._seat

    @property
    def seats(self) -> list[Seat]:
        """Every seat that it took: one per board and name."""
        return list(self._seats.values())

    @property
    def seat_name(self) -> str | None:
        """Agent name of its seat."""
        return self._seat.agent_name if self._seat else None

    @property
    def board(self) -> str | None:
        """Board of its seat, else the one that it is set up for."""
        return self._seat.board if self._seat else self.settings.board

    @property
    def agent_name(self) -> str:
        """The name that it takes its own seat under."""
        return self.settings.agent_name or self._given_name or DEFAULT_NAME

    @property
    def host(self) -> str:
        """Kind of its host: as it was configured, else as the host calls itself."""
        configured = self.settings.origin("host").kind != "default"
        return self.settings.host.name if configured else self.client_name or self.settings.host.name

    @property
    def is_expected(self) -> bool:
        """Whether somebody is behind it, or may come back."""
        return not self.ended.is_set() and self.lineage.shim.is_alive

    @property
    def is_busy(self) -> bool:
        """Whether a call other than a wait is running."""
        return self.holder.presence.is_busy

    @property
    def waits(self) -> int:
        """Waits in progress."""
        return self.holder.presence.waits

    @property
    def is_acknowledging(self) -> bool:
        """Whether Central is being told of delivered events."""
        return self._acknowledging > 0

    def attach(self) -> int:
        """A link took over; returns its epoch, higher than that of every earlier link."""
        self.link_epoch += 1
        self.requests = self.requests.next_link()
        self._attached = True
        self.cut_reason = None
        self._note_state()
        return self.link_epoch

    def cut(self, epoch: int, reason: str) -> None:
        """The daemon gives the link of this epoch up; of no effect when a newer one exists."""
        if epoch == self.link_epoch:
            self.cut_reason = reason

    def detach(self, epoch: int) -> None:
        """The link of this epoch ended; of no effect when a newer one exists."""
        if epoch == self.link_epoch:
            self._attached = False
            self._note_state()

    @contextmanager
    def calling(self, tool: str) -> Iterator[None]:
        """A tool call of the model is running."""
        self.configuration.repair()  # before anybody looks at the settings
        self.last_tool = tool
        try:
            with charged_to(self.account()), self.holder.calling(), self.witness.calling(self, tool):
                self._note_state()
                yield
        finally:
            self._note_state()
            self._let_go()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A wait of the model is running."""
        try:
            with self.holder.waiting():
                self._note_state()
                yield
        finally:
            self._note_state()

    def watching(self, boards: Sequence[Watched]) -> None:
        """A wait begins to watch these boards."""
        self._watched = list(boards)
        for board in reversed(boards):
            self._take(board.waiter.seat)

    def _take(self, seat: Seat) -> None:
        self._seat = self._seats[seat.uri] = seat
        self.holder.use(seat)

    def end(self, reason: str) -> None:
        """Nobody is behind this conversation any more."""
        if self.end_reason is None:
            self.end_reason = reason
            self.ended.set()

    def _note_state(self) -> None:
        if self.state != self._state:
            self.witness.state_changed(self, self._state, self._state_since)
            self._state = self.state
            self._state_since = time.monotonic()

    # --- what it needs of the rest ----------------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """What it is, at this moment."""
        return self.configuration.settings

    @property
    def memory(self) -> Memory:
        """What it has been shown already."""
        return self._memory

    async def connect(self) -> Central:
        """Its Central, with the credential of this moment; from the first time on it has its name.

        Raises ConfigurationError with the first setting that prevents it, or because the conversation has ended.
        """
        self.follow_doors()
        if not self.configuration.repair():
            raise ConfigurationError(self.settings.problems[0])
        self._given_name = await self._name(self)
        if self.ended.is_set():  # its Central was given back already and must not be opened for it again
            raise ConfigurationError(f"This conversation has ended: {self.end_reason}.")
        central = await self._use()
        if isinstance(central.pool.last_error, (Unauthenticated, Forbidden)) and self.configuration.refused():
            central = await self._use()
        self._let_go()
        return central

    async def _use(self) -> Central:
        key = self.configuration.key
        if key is None:
            raise ConfigurationError("ONBOARD_CENTRAL_TOKEN is not set")
        central = await self._centrals.use(key, self.id)
        central.leases.enter(self.holder)
        return central

    def follow_doors(self) -> bool:
        """Go on with what its stored door says now; returns whether its credential is another one, or gone.

        Waits begin again with it, other calls end with the one that they began with.
        """
        if not self.configuration.follow():
            return False
        log.info("%s: its door was replaced or forgotten", self.id)
        self._let_go()
        return True

    def _let_go(self) -> None:
        """Leave the Centrals of earlier credentials, unless a call that is no wait may still be under way there."""
        if not self.is_busy:
            self._centrals.release(self.id, but=self.configuration.key)

    def account(self, agent_name: str | None = None) -> Account | None:
        """Who pays for its calls: its own name, or the one that a call gives."""
        if self._stats is None:
            return None
        return Account(self._stats, lambda: (self.settings.board, agent_name or self.agent_name))

    @property
    def windows(self) -> Windows:
        """Where it is counted when something may have been lost."""
        return self._centrals.windows

    @property
    def denials(self) -> Denials:
        """The boards that refused somebody lately."""
        return self._centrals.denials

    def seat_request(self, board: str, agent_name: str | None = None) -> SeatRequest:
        """The seat it takes on a board: under its own name, or under the one that a call gives."""
        capabilities = self.settings.capabilities
        return SeatRequest(
            board=board,
            agent_name=self.agent_name if agent_name is None else agent_name,
            role=self.settings.role,
            capabilities=frozen(capabilities) if capabilities is not None else None,
            platform=self.settings.host.platform,
            careful=self.settings.is_door_mode and agent_name is None and board == self.settings.board,
        )

    async def join(self, *, source: Source = "model") -> tuple[Central, Seat]:
        """Its Central and its own seat, joined; `source` as in Seats.join."""
        central = await self.connect()
        seat = await central.seats.join(self.seat_request(self.settings.board), self.id, source=source)
        self._take(seat)
        return central, seat

    # --- delivery ---------------------------------------------------------------------------------------------------

    def delivered(self, request: RequestId) -> None:
        """The shim wrote the answer to the host's `request` to the host."""
        acknowledge = self.requests.take_due(request)
        if acknowledge is not None and self.tasks is not None:
            self._acknowledging += 1
            self.tasks.start_soon(self._acknowledge, acknowledge)

    async def _acknowledge(self, acknowledge: Callable[[], Awaitable[None]]) -> None:
        try:
            with charged_to(self.account()), on_behalf_of(self.id):
                await acknowledge()
        except CentralError as error:
            # The events stay unacknowledged at Central: the seat's next wait without a cursor brings them again.
            log.warning("%s: events were delivered but not acknowledged: %s", self.id, error)
        finally:
            self._acknowledging -= 1

    # --- for people -------------------------------------------------------------------------------------------------

    def status(self, sharing: int) -> ConversationStatus:
        """What `pursersctl status --conversation` shows of it."""
        return ConversationStatus(
            row=self.row(sharing),
            settings=settings_of(self.settings, self._given_name),
            doors=self.configuration.folder,
            stats=self._stats.path if self._stats is not None else None,
            seats=seats_of(self.id, self._centrals.all(), self.settings.board),
            problems=list(self.settings.problems),
            notes=list(self.settings.notes),
        )

    def row(self, sharing: int) -> SeatRow:
        """Its line in `pursersctl ps`; `sharing` conversations use its seat."""
        now = time.monotonic()
        host = self.lineage.host
        polled = [board for board in self._watched if board.is_polled]
        delivery: Delivery | None = ("poll" if polled else "push") if self._watched else None
        return SeatRow(
            seat=self.seat_name,
            board=self.board,
            role=self._seat.role if self._seat else self.settings.role,
            host=self.host,
            host_pid=host.pid if host else None,
            shim_pid=self.lineage.shim.pid,
            conversation=self.id,
            state=self.state,
            delivery=delivery,
            since_s=round(now - self._state_since, 3),
            age_s=round(now - self._created, 3),
            last_tool=self.last_tool,
            link_epoch=self.link_epoch,
            shared_by=sharing if self._seat else 0,
            central=self.settings.url if not self.settings.problems else None,
            cwd=self.lineage.cwd,
            shim_version=self.lineage.shim_version,
            poll_reason=(polled[0].poll_reason or POLL_WANTED) if polled else None,
            boards=[board.name for board in self._watched],
            leases=leases_of(self.holder),
            problem=self.settings.problems[0] if self.settings.problems else None,
            cut_reason=self.cut_reason,
            wakes=self.witness.wakes,
            lag=max((board.lag for board in self._watched if board.lag is not None), default=None),
        )


async def _no_name(conversation: Conversation) -> str | None:
    """The settings have one."""
    return None
