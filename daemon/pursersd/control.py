"""The control side of the socket: one function per request of pursersctl."""

import logging
import os
import time
from collections.abc import Callable

import anyio
import msgspec
import psutil
from anyio.abc import SocketStream

from pursers_shim import starts, wire
from pursers_shim.paths import Place
from pursersd import __version__, api, door_join, event_stream, own_health
from pursersd import log as logs
from pursersd.api.events import Snapshot
from pursersd.configured import Configured
from pursersd.conversation.reaper import reap
from pursersd.conversation.registry import Conversations
from pursersd.descriptors import Descriptors
from pursersd.errors import PursersError
from pursersd.events import now
from pursersd.feed.centrals import Centrals
from pursersd.health import Machine, Since, warnings
from pursersd.installed import installed
from pursersd.local.board import LocalBoard
from pursersd.metrics import exposition
from pursersd.stalls import StallWatch
from pursersd.state.stats import StatsWriters
from pursersd.suspension import Suspension

log = logging.getLogger(__name__)

Stop = Callable[[str, bool], None]
"""Begin to leave: reason, and whether to let running calls finish first."""


class _Refused(PursersError):
    """The request cannot be answered; `code` is for programs."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Control:
    """Answers pursersctl. Reading requests change nothing."""

    def __init__(
        self,
        conversations: Conversations,
        centrals: Centrals,
        stats: StatsWriters,
        *,
        epoch: int,
        place: Place,
        log_path: str | None,
        started_by: api.StartedBy,
        stop: Stop,
        is_leaving: Callable[[], bool],
        descriptors: Descriptors,
        suspension: Suspension,
        stalls: StallWatch | None,
        configured: Configured,
        reload: Callable[[], api.Reloaded],
        local: LocalBoard,
    ) -> None:
        self._conversations = conversations
        self._centrals = centrals
        self._stats = stats
        self._epoch = epoch
        self._place = place
        self._log_path = log_path
        self._started_by = started_by
        self._stop = stop
        self._is_leaving = is_leaving
        self._descriptors = descriptors
        self._suspension = suspension
        self._stalls = stalls
        self._configured = configured
        self._reload = reload
        self._local = local
        self._started = time.monotonic()
        self._since = Since()

    async def serve(
        self,
        stream: SocketStream,
        lines: wire.Lines,
        early: list[bytes | wire.LineTooLong],
        greeting: dict[str, object],
    ) -> None:
        """Welcome a control link and answer its requests until it ends."""
        await stream.send(wire.encode(greeting))
        pending = early
        while True:
            for line in pending:
                request = _request(line)
                if isinstance(request, api.Request) and request.verb == "events":
                    await event_stream.serve(stream, request.id, self._conversations.events, self.snapshot)
                    return
                reply = request if isinstance(request, api.Reply) else await self._answer(request)
                await stream.send(msgspec.json.encode(reply) + b"\n")
            try:
                pending = lines.feed(await stream.receive(65536))
            except anyio.EndOfStream:
                return

    async def _answer(self, request: api.Request) -> api.Reply:
        try:
            return api.answer(request.id, await self._result(request.verb, request.params))
        except msgspec.ValidationError as error:
            return api.refusal(request.id, "bad_request", f"{request.verb}: {error}")
        except PursersError as error:
            return api.refusal(request.id, error.code, str(error))

    async def _result(self, verb: str, params: dict[str, object]) -> msgspec.Struct:
        """What a request brings. Raises PursersError, and ValidationError for wrong params."""
        match verb:
            case "ps":
                return self.ps()
            case "status":
                return self.status()
            case "conversation":
                return self._the_conversation(str(params.get("which", "")))
            case "stats":
                return self.stats()
            case "metrics":
                return self.metrics()
            case "ping":
                return self.status().daemon
            case "stop":
                return self.stop(str(params.get("reason", "stop")), drain=bool(params.get("drain", False)))
            case "ended":
                return api.Ended(ended=self._conversations.departures.rows())
            case "reap":
                really = params.get("yes") is True
                return api.Reap(found=reap(self._conversations, really=really), ending=really)
            case "config":
                return self._configured.show()
            case "reload":
                return self._reload()
            case "join":
                return await self.join(msgspec.convert(params, api.Join))
            case "doors_changed":
                return self.doors_changed()
            case "local":
                return self._local.status()
            case "local_up":
                board = await self._local.up(msgspec.convert(params, api.LocalUp))
                self.doors_changed()
                return board
            case "local_down":
                gone = await self._local.down(reset=msgspec.convert(params, api.LocalDown).reset)
                self.doors_changed()
                return gone
            case "local_ticket":
                return await self._local.create_ticket(msgspec.convert(params, api.LocalTicket))
            case other:
                text = f"This pursersd ({__version__}) does not know {other!r}. Update it, then run: pursersctl restart"
                raise _Refused("unknown_verb", text)

    async def join(self, request: api.Join) -> api.Joined:
        """Take a seat through a door and keep the door; conversations that use its board and role notice."""
        admitted = await door_join.join(self._centrals, request)
        seat = admitted.seat
        await self._conversations.expect(admitted.door, seat.agent_name, automatic=request.name is None)
        self.doors_changed()
        return api.Joined(board=seat.board, role=seat.role, seat_name=seat.agent_name, push=admitted.push)

    def doors_changed(self) -> api.DoorsNoted:
        """Look at the stored doors again: somebody has changed them."""
        return api.DoorsNoted(conversations=self._conversations.doors_changed())

    def _the_conversation(self, which: str) -> api.ConversationStatus:
        """The one that is meant. Raises _Refused unless that is exactly one."""
        found = self.conversation(which)
        if len(found) == 1:
            return found[0]
        if not found:
            code, text = "unknown_conversation", f"No conversation is meant by {which!r}."
        else:
            names = ", ".join(sorted(status.row.conversation for status in found))
            code, text = "ambiguous_conversation", f"{which!r} may mean several conversations: {names}."
        raise _Refused(code, f"{text} Their ids are in: pursersctl ps --json")

    def conversation(self, which: str) -> list[api.ConversationStatus]:
        """The conversations that `which` may mean, in detail."""
        return self._conversations.status(which)

    def summary(self) -> str:
        """One line for a service manager."""
        rows, count = self._conversations.rows(), len(self.warnings())
        waiting = sum(row.state == "waiting" for row in rows)
        text = f"{len(rows)} conversation{'' if len(rows) == 1 else 's'}, {waiting} waiting"
        return f"{text}; {count} warning{'' if count == 1 else 's'}: pursersctl status" if count else text

    def ps(self) -> api.Ps:
        """Every conversation."""
        return api.Ps(seats=self._conversations.rows(), version=__version__, warnings=self.warnings())

    def status(self) -> api.Status:
        """The daemon, its Centrals, and what an operator should know."""
        machine = self._machine()
        return api.Status(
            daemon=api.DaemonStatus(
                pid=os.getpid(),
                version=__version__,
                epoch=self._epoch,
                state="draining" if self._is_leaving() else "ready",
                uptime_s=round(time.monotonic() - self._started, 3),
                home=self._place.home,
                socket=self._place.socket,
                log=self._log_path,
                started_by=self._started_by,
                rss_bytes=psutil.Process().memory_info().rss,
                descriptors=machine.descriptors,
                descriptor_limit=machine.descriptor_limit,
                log_lines_lost=machine.log_lost,
                suspensions=machine.suspensions,
                longest_stall_s=round(self._stalls.longest_s, 6) if self._stalls is not None else 0.0,
            ),
            centrals=[central.status() for central in self._centrals.all()],
            conversations=len(self._conversations),
            warnings=self.warnings(),
            lossy_windows=self._centrals.windows.snapshot(),
            latency=self._conversations.timings.rows(),
            local=None if (local := self._local.status()).state == "none" else local,
        )

    def snapshot(self) -> Snapshot:
        """What somebody must know who follows the events from now on."""
        return Snapshot(
            at=now(),
            version=__version__,
            epoch=self._epoch,
            seats=self._conversations.rows(),
            centrals=[central.status() for central in self._centrals.all()],
            warnings=self.warnings(),
        )

    def metrics(self) -> api.Metrics:
        """Everything that is counted."""
        text = exposition(self.status(), self._conversations.rows(), self._conversations.timings.series())
        return api.Metrics(text=text)

    def warnings(self) -> list[api.Warning]:
        """What an operator should know at this moment."""
        centrals, rows = [central.status() for central in self._centrals.all()], self._conversations.rows()
        local = own_health.of_local_board(self._local.status())
        found = [*self._of_ourselves(rows), *local, *warnings(centrals, rows, self._stats.rows(), self._machine())]
        return self._since.told(found)

    def _machine(self) -> Machine:
        trouble = logs.trouble()
        return Machine(
            descriptors=self._descriptors.in_use,
            descriptor_limit=self._descriptors.limit,
            refused_s=self._descriptors.refused_s,
            log_error=trouble.text if trouble else None,
            log_lost=trouble.lost if trouble else 0,
            log_error_s=trouble.since_s if trouble else 0.0,
            suspensions=self._suspension.count,
            woke_s=self._suspension.since_s,
        )

    def _of_ourselves(self, rows: list[api.SeatRow]) -> list[api.Warning]:
        now = time.time()
        found = own_health.of_installation(__version__, installed(), time.monotonic() - self._started)
        found += own_health.of_shims(__version__, rows)
        found += own_health.of_configuration(self._configured.problems)
        before = starts.read(self._place)
        if before is not None and before.recent(now).count >= starts.LOOP:
            found += own_health.of_starts(before.count, now - before.last, before.words)
        return found

    def stats(self) -> api.StatsFiles:
        """What was counted and is not written yet."""
        return api.StatsFiles(files=self._stats.rows())

    def stop(self, reason: str, *, drain: bool) -> api.Stopping:
        """Begin to leave."""
        self._stop(reason if reason in (wire.STOP, wire.RESTART, wire.IDLE) else wire.STOP, drain)
        return api.Stopping(pid=os.getpid(), conversations=len(self._conversations))


def _request(line: bytes | wire.LineTooLong) -> api.Request | api.Reply:
    """What is asked, or the answer to what is no question."""
    try:
        if isinstance(line, wire.LineTooLong):
            raise msgspec.ValidationError(str(line))
        return msgspec.json.decode(line, type=api.Request)
    except (msgspec.DecodeError, RecursionError) as error:
        return api.refusal(0, "bad_request", f"Not a control request: {error}")
