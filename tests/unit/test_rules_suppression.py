"""rules/suppression: a cue made from state is shown once, and again when it is news (bridge.md §2.6, §13 D4)."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pursersd.rules.relevance import Watcher
from pursersd.rules.suppression import Suppression, SyntheticGuard, fingerprint

ME = Watcher("b", "AI-me", "me", "PR-1", "claimable")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def cue(ticket_id: str, updated_at: str | None = "u1", **fields: object) -> dict[str, object]:
    return {
        "kind": "ticket_backlog",
        "source": "backlog_scan",
        "ticket_id": ticket_id,
        "status": "open",
        "updated_at": updated_at,
        **fields,
    }


def memory(limit: int = 500) -> tuple[Suppression, Clock]:
    clock = Clock()
    return Suppression(600.0, clock=clock, limit=limit), clock


def shows(suppression: Suppression, event: dict[str, object], seat: Watcher = ME) -> bool:
    return suppression.should_surface(seat, str(event["ticket_id"]), fingerprint(event))


def test_asking_does_not_count_as_showing() -> None:
    suppression, _ = memory()
    assert shows(suppression, cue("T"))
    assert shows(suppression, cue("T"))
    suppression.surfaced(ME, [cue("T")])
    assert not shows(suppression, cue("T"))


def test_it_comes_again_after_the_interval_and_not_before() -> None:
    suppression, clock = memory()
    suppression.surfaced(ME, [cue("T")])
    clock.now += 599.9
    assert not shows(suppression, cue("T"))
    clock.now += 0.1
    assert shows(suppression, cue("T"))


def test_a_changed_ticket_comes_at_once() -> None:
    suppression, _ = memory()
    suppression.surfaced(ME, [cue("T")])
    assert shows(suppression, cue("T", "u2"))
    assert shows(suppression, {**cue("T"), "status": "submitted"})


def test_a_journal_event_clears_the_ticket_for_every_seat_of_the_board() -> None:
    suppression, _ = memory()
    other = replace(ME, agent_id="AI-other", view="submitted")
    elsewhere = replace(ME, board="c")
    for seat in (ME, other, elsewhere):
        suppression.surfaced(seat, [cue("T"), cue("U")])
    suppression.forget_ticket("b", "T")
    assert [shows(suppression, cue("T"), seat) for seat in (ME, other, elsewhere)] == [True, True, False]
    assert not shows(suppression, cue("U"))


def test_seats_and_views_are_apart() -> None:
    suppression, _ = memory()
    suppression.surfaced(ME, [cue("T")])
    assert shows(suppression, cue("T"), replace(ME, agent_id="AI-other"))
    assert shows(suppression, cue("T"), replace(ME, view="submitted"))
    assert shows(suppression, cue("T"), replace(ME, board="c"))
    assert not shows(suppression, cue("T"), replace(ME, only_mine=False, project="alpha"))


def test_only_synthetic_events_count() -> None:
    suppression, _ = memory()
    suppression.surfaced(ME, [cue("T", seq=4), {**cue("U"), "source": "journal"}, {**cue("V"), "ticket_id": None}])
    assert shows(suppression, cue("T"))
    assert shows(suppression, cue("U"))
    assert shows(suppression, {**cue("V"), "ticket_id": "V"})
    assert repr(suppression) == "<Suppression 0/500>"


def test_what_was_told_longest_ago_is_forgotten_first() -> None:
    suppression, _ = memory(limit=2)
    suppression.surfaced(ME, [cue("T1"), cue("T2")])
    assert not shows(suppression, cue("T1"))
    suppression.surfaced(ME, [cue("T3")])
    assert shows(suppression, cue("T1"))
    assert not shows(suppression, cue("T2"))
    suppression.surfaced(ME, [cue("T3", "u2"), cue("T2", "u2"), cue("T4")])
    assert shows(suppression, cue("T3", "u2"))
    assert not shows(suppression, cue("T2", "u2"))


def test_a_board_with_more_open_work_than_a_bridge_remembers_is_told_once() -> None:
    suppression = Suppression()
    board = [cue(f"T{n}") for n in range(1000)]
    suppression.surfaced(ME, board)
    assert not any(shows(suppression, event) for event in board)


def test_nothing_is_kept_beyond_its_time() -> None:
    suppression, clock = memory()
    suppression.surfaced(ME, [cue("T1"), cue("T2")])
    clock.now += 599
    suppression.surfaced(ME, [cue("T2")])
    clock.now += 1
    suppression.surfaced(ME, [cue("T3")])
    assert repr(suppression) == "<Suppression 2/500>"
    suppression.forget_ticket("b", "T1")
    assert not shows(suppression, cue("T2"))


def test_a_ticket_that_an_event_told_of_is_no_news_as_a_cue() -> None:
    suppression, clock = memory()
    suppression.told(ME, {"ticket_id": "T", "status": "open", "updated_at": "u1"})
    suppression.told(ME, {"status": "open"})
    assert not shows(suppression, cue("T"))
    assert shows(suppression, cue("T", "u2"))
    assert "1/500" in repr(suppression)
    clock.now += 600
    assert shows(suppression, cue("T"))


def test_next_expiry_is_the_earliest_one_that_is_still_withheld() -> None:
    suppression, clock = memory()
    assert suppression.next_expiry(ME) is None
    suppression.surfaced(ME, [cue("T1")])
    clock.now += 10
    suppression.surfaced(ME, [cue("T2")])
    suppression.surfaced(replace(ME, board="c"), [cue("T1")])
    assert suppression.next_expiry(ME) == 1600.0
    assert suppression.next_expiry(replace(ME, board="c")) == 1610.0
    assert suppression.next_expiry() == 1600.0
    clock.now = 1600.0
    assert suppression.next_expiry(ME) == 1610.0
    clock.now = 1610.0
    assert suppression.next_expiry(ME) is None


def test_suppressed_for_is_the_opposite_for_one_seat() -> None:
    suppression, _ = memory()
    suppression.surfaced(ME, [cue("T")])
    suppressed = suppression.suppressed_for(ME)
    assert suppressed("T", fingerprint(cue("T")))
    assert not suppressed("U", fingerprint(cue("U")))


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("pass"), st.floats(0.1, 400)),
            st.tuples(st.just("show"), st.sampled_from(["T", "U"])),
            st.tuples(st.just("journal"), st.sampled_from(["T", "U"])),
        ),
        max_size=30,
    )
)
def test_a_cue_is_withheld_exactly_for_the_interval(steps: list[tuple[str, object]]) -> None:
    suppression, clock = memory()
    shown: dict[object, float] = {}
    for step, value in steps:
        if step == "pass":
            clock.now += float(str(value))
        elif step == "journal":
            suppression.forget_ticket("b", str(value))
            shown.pop(value, None)
        else:
            news = value not in shown or clock.now >= shown[value] + 600.0
            assert shows(suppression, cue(str(value))) is news
            if news:
                suppression.surfaced(ME, [cue(str(value))])
                shown[value] = clock.now


# --- the guard ------------------------------------------------------------------------------------------------------


def test_the_same_cue_ends_a_wait_at_one_cursor_only_once() -> None:
    guard = SyntheticGuard()
    first = [cue("T")]
    assert guard.admit(ME, 7, first) == first
    assert guard.admit(ME, 7, first) == first
    guard.returned(ME, 7, first)
    assert guard.admit(ME, 7, first) == []
    assert guard.admit(ME, 8, first) == first
    assert guard.admit(replace(ME, view="submitted"), 7, first) == first


def test_journal_events_and_new_work_pass_the_guard() -> None:
    guard = SyntheticGuard()
    guard.returned(ME, 7, [cue("T")])
    journal: dict[str, object] = {"kind": "ticket_created", "seq": 8, "ticket_id": "T"}
    keepalive: dict[str, object] = {"kind": "lease_keepalive_paused", "source": "bridge_keepalive", "ticket_id": "T"}
    fresh = [journal, keepalive, cue("T", seq=8), cue("T", kind="ticket_offered"), cue("U"), cue("T", "u2")]
    assert guard.admit(ME, 7, [cue("T"), *fresh]) == fresh


def test_a_renewed_offer_passes_the_guard() -> None:
    guard = SyntheticGuard()
    offer = cue("T", source="offer_reconciliation", kind="ticket_offered", offer={"expires_at": "1"})
    guard.returned(ME, 7, [offer])
    assert guard.admit(ME, 7, [offer]) == []
    again = {**offer, "offer": {"expires_at": "2"}}
    assert guard.admit(ME, 7, [again]) == [again]


def test_the_guard_adds_up_at_one_cursor_and_starts_anew_at_the_next() -> None:
    guard = SyntheticGuard()
    guard.returned(ME, 7, [cue("T")])
    guard.returned(ME, 7, [cue("U")])
    assert guard.admit(ME, 7, [cue("T"), cue("U")]) == []
    guard.returned(ME, 8, [cue("U")])
    assert guard.admit(ME, 8, [cue("T"), cue("U")]) == [cue("T")]
    guard.returned(ME, 9, [{"kind": "ticket_created", "seq": 9, "ticket_id": "T"}])
    assert guard.admit(ME, 8, [cue("U")]) == []


def test_the_guard_withholds_no_longer_than_the_interval() -> None:
    """A caller whose waits end before any scan has only its entries to be told at."""
    clock = Clock()
    guard = SyntheticGuard(600.0, clock=clock)
    guard.returned(ME, 7, [cue("T")])
    clock.now += 300
    guard.returned(ME, 7, [cue("U")])
    clock.now += 299.9
    assert guard.admit(ME, 7, [cue("T"), cue("U")]) == []
    clock.now += 0.1
    assert guard.admit(ME, 7, [cue("T"), cue("U")]) == [cue("T")]


def test_the_guard_remembers_a_bounded_number_of_seats() -> None:
    guard = SyntheticGuard(limit=2)
    seats = [replace(ME, agent_id=f"AI-{n}") for n in range(3)]
    for seat in seats:
        guard.returned(seat, 7, [cue("T")])
    assert [bool(guard.admit(seat, 7, [cue("T")])) for seat in seats] == [True, False, False]
    guard.returned(seats[1], 7, [cue("T")])
    guard.returned(seats[0], 7, [cue("T")])
    assert [bool(guard.admit(seat, 7, [cue("T")])) for seat in seats] == [False, False, True]
    assert repr(guard) == "<SyntheticGuard 2/2>"


def test_what_withholds_nothing_any_more_is_forgotten_in_each_interval() -> None:
    suppression, clock = memory()
    for number in range(100):
        suppression.surfaced(ME, [cue(f"T{number}")])
    clock.now += 599.0
    suppression.surfaced(ME, [cue("later")])
    clock.now += 1.0
    suppression.surfaced(ME, [cue("last")])
    assert repr(suppression) == "<Suppression 2/500>"
    assert not shows(suppression, cue("later"))
