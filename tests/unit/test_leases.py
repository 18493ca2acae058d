"""seats/leases: found, kept, paused, resumed and let go, in virtual time. On the real Central: system/test_leases."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pursersd.clock import SleepWatch
from pursersd.errors import ToolFailed, Unauthenticated, Unreachable
from pursersd.rules.lease import LOST
from pursersd.seats.holder import Holder
from pursersd.seats.kept import Kept
from pursersd.seats.leases import Leases
from pursersd.seats.seat import Seat, SeatRequest, Seats
from unit import virtual_time
from unit.lease_central import AHEAD, LeaseCentral, agent, wall
from unit.virtual_time import now, virtually

ABSENT = Unreachable("nobody there", sent=False)


class Scene:
    """The leases of one pool, and the conversations that work there."""

    def __init__(self, central: LeaseCentral) -> None:
        self.central = central
        self.asleep = 0.0
        self.seats = Seats(central.as_pool)
        kept = Kept(clock=self.clock, chance=lambda: 0.5)
        sleep = SleepWatch(boot=self.clock, wall=wall, awake=now)
        self.leases = Leases(central.as_pool, self.seats, kept=kept, sleep=sleep)
        self.wanted: frozenset[str] = frozenset()
        self.leases.want = self._want

    def clock(self) -> float:
        return now() + self.asleep

    def holder(self, name: str = "ann", idle_limit: float | None = None, **options: Any) -> Holder:
        """A conversation whose seat has been joined."""
        holder = Holder(idle_limit=idle_limit, clock=self.clock, **options)
        request = SeatRequest("b", name, "worker")
        self.leases.enter(holder)
        holder.use(Seat(request, agent(name), "PR-1", "worker", self.central.ttl, None))
        self.central.seats.add(name)
        self.leases.kept.set_ttl("b", float(self.central.ttl))
        return holder

    def cued(self) -> None:
        self.leases.kept.journal_cued("b")

    def _want(self, boards: frozenset[str]) -> None:
        self.wanted = boards


@asynccontextmanager
async def keeping(**options: Any) -> AsyncIterator[Scene]:
    scene = Scene(LeaseCentral(**options))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.leases.run)
        yield scene
        tasks.cancel_scope.cancel()


def told(holder: Holder, name: str = "ann") -> list[object]:
    return [cue["kind"] for cue in holder.cues(agent(name))]


@virtually
async def test_a_claim_is_found_after_a_cue_and_kept_while_somebody_works() -> None:
    async with keeping() as scene:
        holder = scene.holder()
        scene.central.claim("ann", "T")
        scene.cued()
        with holder.calling():
            await anyio.sleep(100)
            assert scene.central.is_held("ann", "T")
        assert scene.central.tickets["T"].source == "keepalive"
        assert scene.wanted == {"b"}
        assert 25 <= scene.central.count("lease_renew") <= 35
        assert scene.central.count("lease_renew") + 2 >= scene.central.count("ticket_list")
        assert scene.central.count("lease_renew") + 2 >= scene.central.count("board_status")
        assert scene.central.most == 1
        assert told(holder) == []


@virtually
async def test_without_a_cue_it_is_found_in_time_all_the_same() -> None:
    async with keeping() as scene:
        holder = scene.holder()
        with holder.calling():
            await anyio.sleep(1)
            scene.central.claim("ann", "T")
            await anyio.sleep(40)
            assert scene.central.is_held("ann", "T")


@virtually
async def test_nobody_looks_while_everybody_waits_or_is_idle() -> None:
    async with keeping() as scene:
        holder, _ = scene.holder(), scene.holder("bob", idle_limit=1.0)
        await anyio.sleep(2)
        with holder.calling(), holder.waiting():
            before = len(scene.central.sent)
            for _ in range(50):
                scene.cued()
                await anyio.sleep(1)
        assert len(scene.central.sent) == before


@virtually
async def test_many_cues_cost_a_look_now_and_then() -> None:
    async with keeping(ttl=900) as scene:
        with scene.holder().calling():
            for _ in range(900):
                scene.cued()
                await anyio.sleep(1)
        assert scene.central.count("board_status") <= 900 / 45 + 1
        assert scene.central.count("ticket_list") == 0


@virtually
async def test_tickets_that_a_wait_reads_tell_of_claims_too() -> None:
    async with keeping() as scene:
        holder = scene.holder()
        scene.central.claim("ann", "T")
        scene.central.claim("somebody", "U")
        with holder.calling(), holder.waiting():
            scene.leases.kept.tickets(
                "b", {"tickets": [scene.central.row("T"), scene.central.row("U")], "latest_seq": 2}
            )
            await anyio.sleep(40)
            assert scene.central.is_held("ann", "T")
        assert not scene.central.wrong


@virtually
async def test_an_idle_conversation_pauses_once_and_a_call_resumes() -> None:
    async with keeping() as scene:
        holder = scene.holder(idle_limit=6.0)
        scene.central.claim("ann", "T")
        scene.cued()
        await anyio.sleep(9)
        assert told(holder) == ["lease_keepalive_paused"]
        assert scene.central.let_go == 1
        assert scene.wanted == frozenset()
        (kept,) = holder.leases()
        assert kept[0].is_paused
        renewals = scene.central.count("lease_renew")
        with holder.calling():
            await anyio.sleep(0.5)
            assert scene.central.count("lease_renew") == renewals + 1
            await anyio.sleep(30)
            assert scene.central.is_held("ann", "T")
        assert told(holder) == ["lease_keepalive_paused"]


@virtually
async def test_a_form_that_nobody_fills_in_pauses_a_lease_and_its_answer_resumes_it() -> None:
    async with keeping() as scene:
        holder = scene.holder(idle_limit=6.0)
        scene.central.claim("ann", "T")
        scene.cued()
        with holder.calling():
            await anyio.sleep(20)
            assert told(holder) == [], "a call that works may take as long as it likes"
            holder.forms_changed(1)
            await anyio.sleep(9)
            assert told(holder) == ["lease_keepalive_paused"]
            renewals = scene.central.count("lease_renew")
            holder.forms_changed(-1)
            await anyio.sleep(30)
            assert scene.central.count("lease_renew") > renewals
            assert scene.central.is_held("ann", "T")


@virtually
async def test_a_paused_lease_that_lapsed_is_forgotten_in_silence() -> None:
    async with keeping() as scene:
        holder = scene.holder(idle_limit=1.0)
        scene.central.claim("ann", "T")
        scene.cued()
        await anyio.sleep(60)
        renewals = scene.central.count("lease_renew")
        scene.central.reap()
        scene.central.claim("bob", "T")
        with holder.calling():
            await anyio.sleep(5)
        assert (holder.leases(), told(holder), scene.central.let_go) == ([], ["lease_keepalive_paused"], 1)
        assert scene.central.count("lease_renew") == renewals


@virtually
async def test_calls_of_the_model_make_renewals_needless() -> None:
    async with keeping() as scene:
        with scene.holder().calling():
            scene.central.claim("ann", "T")
            scene.cued()
            for _ in range(40):
                await anyio.sleep(1)
                scene.central.touch("ann")
        assert scene.central.count("lease_renew") <= 1, "the first one, until Central's clock is known"
        assert scene.central.tickets["T"].source == "model"


@virtually
async def test_after_a_sleep_it_is_asked_first() -> None:
    async with keeping(ttl=300) as scene:
        holder = scene.holder()
        scene.central.claim("ann", "T")
        scene.cued()
        with holder.calling():
            await anyio.sleep(20)
            renewals = scene.central.count("lease_renew")
            scene.central.end("T", "open", "lease expired")
            scene.central.claim("bob", "T")
            scene.asleep += 30  # nothing is due after so short a sleep
            await anyio.sleep(11)
        assert told(holder) == ["lease_keepalive_failed"]
        assert holder.cues(agent("ann"))[0]["error"] == LOST
        assert scene.central.count("lease_renew") == renewals
        assert not scene.central.wrong


@virtually
async def test_an_answer_about_holders_is_not_good_for_long() -> None:
    async with keeping(ttl=30, delay=1.0) as scene:
        with scene.holder().calling():
            for number in range(6):
                scene.central.claim("ann", f"T{number}")
            scene.cued()
            while scene.central.count("lease_renew") < 2:
                await anyio.sleep(0.1)
            await anyio.sleep(1.5)
            scene.central.end("T5", "open", "explicit unclaim")
            scene.central.claim("bob", "T5")
            await anyio.sleep(20)
        assert scene.central.wrong == []


@virtually
async def test_who_is_gone_keeps_nothing_unless_another_uses_the_seat() -> None:
    async with keeping() as scene:
        first, second = scene.holder(), scene.holder()
        with first.calling(), second.calling():
            scene.central.claim("ann", "T")
            scene.cued()
            await anyio.sleep(5)
            first.leave()
            await anyio.sleep(30)
            assert scene.central.is_held("ann", "T")
            second.leave()
            assert not scene.leases.kept.leases
            renewals = scene.central.count("lease_renew")
            await anyio.sleep(60)
        assert scene.central.count("lease_renew") == renewals
        assert scene.leases.kept.users == {}


@virtually
async def test_the_one_that_was_given_the_ticket_keeps_it_and_all_are_told_otherwise() -> None:
    async with keeping() as scene:
        given, other = scene.holder(idle_limit=5.0), scene.holder()
        given.given(agent("ann"), ["T"])
        with other.calling():
            scene.central.claim("ann", "T")
            scene.cued()
            await anyio.sleep(12)
            assert (told(given), told(other)) == (["lease_keepalive_paused"], [])
            scene.central.claim("ann", "U")
            scene.cued()
            await anyio.sleep(12)
            scene.central.end("U", "open", "lease expired")
            await anyio.sleep(12)
        assert told(other) == ["lease_keepalive_failed"]
        assert told(given)[1:] == ["lease_keepalive_failed"]


@virtually
async def test_a_central_that_does_not_answer_is_asked_again_and_nothing_is_told() -> None:
    async with keeping(ttl=60) as scene:
        holder = scene.holder()
        scene.central.claim("ann", "T")
        scene.cued()
        with holder.calling():
            await anyio.sleep(5)
            scene.central.is_down = ABSENT
            await anyio.sleep(40)
            scene.central.is_down = None
            await anyio.sleep(60)
            assert scene.central.is_held("ann", "T")
        assert told(holder) == []


@virtually
async def test_a_question_that_hangs_is_given_up() -> None:
    async with keeping(ttl=60) as scene:
        with scene.holder().calling():
            scene.central.claim("ann", "T")
            scene.cued()
            await anyio.sleep(5)
            scene.central.delay = 1e6
            await anyio.sleep(30)
            scene.central.delay = 0.01
            await anyio.sleep(60)
            assert scene.central.is_held("ann", "T")


@virtually
async def test_a_refused_credential_is_not_tried_again_and_again() -> None:
    async with keeping(ttl=900) as scene:
        with scene.holder().calling():
            scene.central.claim("ann", "T")
            scene.cued()
            await anyio.sleep(60)
            scene.central.is_down = Unauthenticated("no")
            before = len(scene.central.sent)
            await anyio.sleep(900)
        assert len(scene.central.sent) - before <= 6


@virtually
async def test_a_renewal_that_central_refuses_is_told_once_and_tried_again_while_it_is_ours() -> None:
    async with keeping() as scene:
        holder = scene.holder()
        scene.central.claim("ann", "T")
        scene.cued()
        with holder.calling():
            await anyio.sleep(3)
            refused, call = [], scene.central.call

            async def refuse(tool: str, arguments: Any, **_: object) -> dict[str, Any]:
                if tool == "lease_renew" and len(refused) < 2:
                    refused.append(tool)
                    raise ToolFailed(tool, "not today")
                return await call(tool, arguments)

            scene.central.call = refuse  # type: ignore[method-assign]
            await anyio.sleep(9)
            assert len(refused) == 2
            assert scene.central.let_go == 0
            (cue,) = holder.cues(agent("ann"))
            assert (cue["kind"], cue["error"]) == ("lease_keepalive_failed", "not today")


@virtually
async def test_a_board_that_was_taken_away_is_told_and_forgotten() -> None:
    async with keeping() as scene:
        holder = scene.holder()
        scene.central.claim("ann", "T")
        scene.cued()
        with holder.calling():
            await anyio.sleep(3)
            scene.central.is_down = ToolFailed("ticket_list", "board access denied: principal is not a member")
            await anyio.sleep(9)
        (cue,) = holder.cues(agent("ann"))
        assert cue["error"] == "board access denied: principal is not a member"
        assert scene.central.let_go == 1
        assert holder.leases() == []


@virtually
async def test_fifty_due_at_once_are_drawn_out_and_all_kept() -> None:
    async with keeping(ttl=900, delay=0.2) as scene:
        with scene.holder().calling():
            for number in range(50):
                scene.central.claim("ann", f"T{number}")
            scene.cued()
            await anyio.sleep(3600)
            assert all(scene.central.is_held("ann", f"T{number}") for number in range(50))
        times = [at for at, tool, _ in scene.central.sent if tool == "lease_renew"]
        assert len(times) < 50 * (3600 / 255 + 1)
        busiest = max(sum(at <= other < at + 10 for other in times) for at in times)
        assert busiest * 0.2 <= 6, "others have at least a part of Central for themselves"
        assert scene.central.most == 1


@virtually
async def test_leases_of_an_earlier_daemon_are_found_without_a_call() -> None:
    async with keeping() as scene:
        scene.central.claim("ann", "T")
        holder = Holder(clock=scene.clock)
        scene.leases.enter(holder)
        scene.central.seats.add("ann")
        await scene.leases.adopt(holder, "ann")
        await anyio.sleep(25)
        assert scene.central.is_held("ann", "T")
        assert scene.central.count("board_join") == 0


def test_the_clocks_of_the_scene_disagree() -> None:
    """Or the tests above would prove little."""
    assert AHEAD > 0


ACTS = ("claim", "unclaim", "submit", "taken", "touch", "call", "quiet", "down", "up", "sleep", "cue", "read")


@settings(max_examples=60, deadline=None)
@given(
    acts=st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 2), st.floats(0.0, 4.0)), max_size=40),
    delay=st.floats(0.0, 0.3),
)
@pytest.mark.parametrize("idle_limit", [None, 3.0])
def test_whatever_happens_no_renewal_is_for_somebody_else(
    idle_limit: float | None, acts: list[tuple[str, int, float]], delay: float
) -> None:
    """Nor is one sent in the name of a model, two at once, or for a seat that nobody uses."""

    async def body() -> None:
        async with keeping(delay=delay) as scene:
            holder, central = scene.holder(idle_limit=idle_limit), scene.central
            for act, number, pause in acts:
                ticket = f"T{number}"
                held = ticket in central.tickets and central.tickets[ticket].status == "claimed"
                match act:
                    case "claim":
                        central.claim("ann", ticket)
                    case "unclaim" if held:
                        central.end(ticket, "open", "explicit unclaim")
                    case "submit" if held:
                        central.end(ticket, "submitted")
                    case "taken" if held and central.running == 0:
                        central.end(ticket, "open", "lease expired")
                        central.claim("bob", ticket)
                        await anyio.sleep(0.7)  # nobody else can do it in the instant between question and renewal
                    case "touch":
                        central.touch("ann")
                    case "call":
                        with holder.calling():
                            await anyio.sleep(pause)
                    case "down":
                        central.is_down = ABSENT
                    case "up":
                        central.is_down = None
                    case "sleep":
                        scene.asleep += 100
                    case "cue":
                        scene.cued()
                    case "read":
                        rows = [central.row(each) for each in central.tickets]
                        scene.leases.kept.tickets("b", {"tickets": rows, "latest_seq": central.seq})
                await anyio.sleep(pause)
            assert central.wrong == []
            assert central.most <= 1
            holder.leave()
            sent = central.count("lease_renew")
            await anyio.sleep(30)
            assert central.count("lease_renew") <= sent + 1, "but the one under way"

    virtual_time.run(body)
