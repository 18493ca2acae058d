"""seats/kept: what joins, tickets and events tell, and what is due then. What is done about it: test_leases."""

import time
from typing import Any

import pytest

from pursersd.rules.lease import LeaseKey
from pursersd.seats.holder import Holder
from pursersd.seats.kept import NEVER, Kept
from unit.scripted_pool import seat

ANN = seat("ann")
KEY = LeaseKey("b", "T", "work", ANN.agent_id)


class Scene:
    def __init__(self) -> None:
        self.now = 1000.0
        self.kept = Kept(clock=lambda: self.now, chance=lambda: 0.0)
        self.holder = Holder(clock=lambda: self.now)
        self.holder.enter(self.kept)
        self.holder.use(ANN)

    def join(self, *tickets: str) -> None:
        leases = [
            {"ticket_id": x, "lease_kind": "work", "ttl_s": 900, "lease_expires_at": "2026-11-30T08:00:00+00:00"}
            for x in tickets
        ]
        self.kept.joined("b", {"agent_id": ANN.agent_id, "agent_name": "ann", "renewed_leases": leases})

    def see(self, holder: str = ANN.agent_id, seq: int = 5, **fields: Any) -> None:
        row = {"ticket_id": "T", "status": "claimed", "claimed_by_agent_id": holder, "ttl_s": 900, **fields}
        self.kept.tickets("b", {"ticket": row, "latest_seq": seq})


def test_a_join_has_just_renewed_what_it_tells_and_the_rest_must_be_asked_about() -> None:
    scene = Scene()
    scene.join("T", "U")
    assert scene.kept.leases[KEY].due == 1300.0
    scene.now += 10
    scene.join("U")
    assert [lease.key.ticket_id for lease in scene.kept.due(scene.now)] == ["T"]
    assert scene.kept.leases[KEY].seen_seq is None


def test_what_is_left_of_a_lease_is_told_by_centrals_clock_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours may be set back while a lease is kept: it would seem to last longer than it does, and lapse."""
    scene = Scene()
    scene.join("T")
    real = time.time
    scene.now += 250
    monkeypatch.setattr(time, "time", lambda: real() + 250 - 200)
    scene.see(lease_expires_at="2026-11-30T08:00:00+00:00")
    assert (scene.kept.leases[KEY].due, scene.kept.leases[KEY].expires) == (1300.0, 1900.0)


def test_only_tickets_of_seats_in_use_count() -> None:
    scene = Scene()
    scene.see("AI-somebody")
    assert not scene.kept.leases
    scene.see()
    assert scene.kept.leases[KEY].seen_seq == 5
    scene.kept.tickets("b", {})
    scene.kept.tickets("b", {"tickets": ["nonsense", None, {}]})
    assert list(scene.kept.leases) == [KEY]


def test_an_event_ends_a_lease_only_if_it_is_newer_than_what_we_saw() -> None:
    scene = Scene()
    scene.see(seq=5)
    released = {"kind": "ticket_status_changed", "ticket_id": "T", "status_to": "open"}
    scene.kept.events("b", [{**released, "seq": 4}])
    scene.kept.events("other", [{**released, "seq": 9}])
    assert KEY in scene.kept.leases
    scene.kept.events("b", [{**released, "seq": 6}])
    assert KEY not in scene.kept.leases


def test_a_lease_with_another_ttl_than_its_board_is_not_put_off() -> None:
    scene = Scene()
    scene.join("T")
    scene.kept.events("b", [{"kind": "board_claim_ttl_changed", "claim_ttl_to": 60, "seq": 7}])
    assert scene.kept.leases[KEY].due == scene.now + 24
    scene.see(lease_expires_at="2026-11-30T08:00:00+00:00")
    assert scene.kept.leases[KEY].due == scene.now + 24, "the next renewal lasts a minute, also one of the model"
    renewed = {"lease_expires_at": "2026-11-30T08:00:30.000001+00:00", "at": "2026-11-30T08:00:00+00:00"}
    scene.kept.renewed(KEY, renewed)
    assert (scene.kept.ttl_s("b"), scene.kept.leases[KEY].ttl_s) == (30.0, 30.0)


def test_the_boards_whose_cues_are_wanted_are_those_with_a_lease_that_is_renewed() -> None:
    scene = Scene()
    assert scene.kept.boards == frozenset()
    scene.see()
    assert scene.kept.boards == {"b"}
    scene.now += 1e5
    scene.kept.settle()
    assert scene.kept.boards == frozenset()
    assert scene.kept.next(scene.now) == NEVER, "an idle conversation costs nothing"


def test_a_look_is_due_soon_after_a_cue_and_rarely_without() -> None:
    scene = Scene()
    scene.kept.looked("b")
    assert scene.kept.look_due("b", scene.now) == scene.now + 300
    scene.kept.journal_cued("b")
    scene.kept.journal_cued("elsewhere")
    assert scene.kept.look_due("b", scene.now) == scene.now + 45
    scene.kept.set_ttl("b", 2.0)
    assert scene.kept.looks_due(scene.now + 0.2) == ["b"]
    scene.kept.looked("b")
    assert scene.kept.looks_due(scene.now) == []
    with scene.holder.calling(), scene.holder.waiting():
        scene.kept.journal_cued("b")
        assert scene.kept.look_due("b", scene.now + 9) == NEVER


def test_a_join_that_nobody_needs_does_not_revive_a_paused_lease() -> None:
    scene = Scene()
    assert scene.kept.may_join(ANN.agent_id)
    scene.see()
    assert scene.kept.may_join(ANN.agent_id)
    scene.now += 1e5
    scene.see(seq=9)
    scene.kept.settle()
    assert scene.kept.leases[KEY].is_paused
    expires = scene.kept.leases[KEY].expires
    scene.now = expires - 1
    assert not scene.kept.may_join(ANN.agent_id)
    assert scene.kept.may_join(seat("bob").agent_id)
    scene.now = expires + 3
    assert scene.kept.may_join(ANN.agent_id), "and lets Central notice that it has lapsed"


def test_what_was_known_of_a_board_is_not_known_of_a_new_seat() -> None:
    scene = Scene()
    scene.kept.surveyed("b", 40)
    scene.holder.use(ANN)
    assert scene.kept.looked("b") == 40
    scene.holder.use(seat("bob"))
    assert scene.kept.looked("b") == 0
    assert scene.kept.agents("b") == {ANN.agent_id, seat("bob").agent_id}
    assert scene.kept.agents("elsewhere") == set()
