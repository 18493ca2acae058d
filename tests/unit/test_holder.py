"""seats/holder: who is told what, and when."""

from typing import Any

from pursersd.rules.lease import LeaseKey
from pursersd.seats.holder import CUES, GIVEN, Holder, Identity
from unit.scripted_pool import seat


class Bell:
    def __init__(self) -> None:
        self.rung = 0

    def ring(self) -> None:
        self.rung += 1


class Notes:
    """Where leases are kept, as far as a holder cares."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def note(self, holder: Holder) -> None:
        self.heard.append("changed")

    def drop(self, holder: Holder) -> None:
        self.heard.append("left")

    def kept_for(self, holder: Holder) -> list[Any]:
        return []


def test_a_cue_rings_every_wait_and_stays_until_the_host_has_it() -> None:
    holder, bell, other = Holder(), Bell(), Bell()
    with holder.listening(bell):
        with holder.listening(other):
            holder.tell("AI-1", {"kind": "first"})
        holder.tell("AI-2", {"kind": "second"})
    holder.tell("AI-1", {"kind": "third"})
    assert (bell.rung, other.rung) == (2, 1)
    first = holder.cues("AI-1")
    assert [cue["kind"] for cue in first] == ["first", "third"]
    assert holder.cues("AI-1") == first, "looking takes nothing away"
    holder.tell("AI-1", {"kind": "first"})
    holder.delivered(first)
    assert [cue["kind"] for cue in holder.cues("AI-1")] == ["first"], "an equal one that came later is another one"
    assert [cue["kind"] for cue in holder.cues("AI-2")] == ["second"]


def test_cues_and_given_tickets_are_bounded() -> None:
    holder = Holder()
    for number in range(CUES + 5):
        holder.tell("AI-1", {"n": number})
    assert [cue["n"] for cue in holder.cues("AI-1")] == list(range(5, CUES + 5))
    holder.given("AI-1", [f"T{number}" for number in range(GIVEN + 1)])
    assert not holder.was_given(LeaseKey("b", "T0", "work", "AI-1"))
    assert holder.was_given(LeaseKey("b", "T1", "review", "AI-1"))
    assert not holder.was_given(LeaseKey("b", "T1", "work", "AI-2"))


def test_a_joined_seat_is_not_forgotten_for_one_that_is_only_known() -> None:
    holder, joined = Holder(), seat("ann")
    holder.know(Identity("b", joined.agent_id, "ann"))
    assert holder.seats[joined.agent_id].seat is None
    holder.use(joined)
    holder.know(Identity("b", joined.agent_id, "ann"))
    assert holder.seats[joined.agent_id].seat is joined


def test_it_reports_to_one_place_at_a_time() -> None:
    holder, first, second = Holder(), Notes(), Notes()
    holder.enter(first)
    holder.enter(first)
    with holder.calling():
        pass
    holder.enter(second)
    holder.leave()
    holder.leave()
    assert first.heard == ["changed", "changed", "changed", "left"]
    assert second.heard == ["changed", "left"]


def test_its_own_limit_counts_else_three_ttls() -> None:
    now = 0.0
    free, strict = (Holder(idle_limit=limit, clock=lambda: now) for limit in (None, 5.0))
    assert (free.limit_s(100.0), strict.limit_s(100.0)) == (300.0, 5.0)
    assert (free.idle_at(100.0), strict.idle_at(100.0)) == (300.0, 5.0)
    assert (free.is_active(6.0, 100.0), strict.is_active(6.0, 100.0)) == (True, False)
