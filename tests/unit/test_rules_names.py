"""rules/names: whose name is it? (bridge.md §10, D12)"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.rules.names import GIVEN_UP_S, LIMIT, PLACES, DoorId, Entry, Place, Wish, choose, find, remember

DOOR = DoorId("http://127.0.0.1:1/mcp", "b", "worker")
HOME, ELSEWHERE = Place("claude-code", "/home/me/a"), Place("codex", "/home/me/a")
NOW = 1_800_000_000.0


def entry(number: int, place: Place | None = HOME, **fields: Any) -> Entry:
    return Entry(
        **{"door": DOOR, "name": f"worker-box-{number}", "place": place, "used_at": NOW - 60 - number, **fields}
    )


def chosen(
    *entries: Entry, place: Place = HOME, taken: set[str] = frozenset(), used: list[str] | None = None, **wish: Any
) -> str:
    found = Wish(**{"door": DOOR, "place": place, "conversation": "c-now", **wish})
    return choose(entries, found, taken=taken, used=used or [], hostname="Box.example", now=NOW)


@pytest.mark.parametrize(
    ("why", "name", "given"),
    [
        ("nothing is known", 1, {}),
        ("its place had one", 3, {"entries": [entry(3)]}),
        ("its place had one, which its door's file has seen", 3, {"entries": [entry(3)], "used": ["worker-box-3"]}),
        ("its place had several: the one used last", 2, {"entries": [entry(4), entry(2), entry(3)]}),
        ("another kind of host had it", 2, {"entries": [entry(1, ELSEWHERE)]}),
        ("another folder had it", 2, {"entries": [entry(1, Place("claude-code", "/home/me/b"))]}),
        ("another conversation lives under it", 2, {"entries": [entry(1)], "taken": {"worker-box-1"}}),
        ("one of two is taken", 2, {"entries": [entry(1), entry(2)], "taken": {"worker-box-1"}}),
        ("all are taken", 3, {"entries": [entry(1), entry(2)], "taken": {"worker-box-1", "worker-box-2"}}),
        ("a conversation that chose its name itself lives under it", 2, {"taken": {"worker-box-1"}}),
        ("a bridge has used it", 2, {"used": ["worker-box-1"]}),
        ("a bridge has used some", 2, {"used": ["worker-box-1", "worker-box-3", "ann"]}),
        ("its user chose it", 2, {"entries": [entry(1, None)]}),
        ("somebody else has it at Central", 2, {"entries": [entry(1, foreign=True)]}),
        ("it is somebody's of another door", 1, {"entries": [entry(1, door=DoorId(DOOR.url, "c", "worker"))]}),
        ("it was given up", 1, {"entries": [entry(1, ELSEWHERE, used_at=NOW - GIVEN_UP_S - 1)]}),
        ("it was not given up yet", 2, {"entries": [entry(1, ELSEWHERE, used_at=NOW - GIVEN_UP_S + 1)]}),
        ("its own is better than a given up one", 7, {"entries": [entry(1, ELSEWHERE, used_at=0.0), entry(7)]}),
        ("given up long ago is better", 2, {"entries": [entry(1, ELSEWHERE, used_at=9.0), entry(2, ELSEWHERE, used_at=8.0)]}),
        ("it was its own before the daemon went", 5, {"entries": [entry(1), entry(5, ELSEWHERE, conversation="c-now")]}),
        (
            "its own from before, in use",  # by itself
            5,
            {"entries": [entry(5, conversation="c-now")], "taken": {"worker-box-5"}},
        ),
        ("its own from before is somebody else's", 1, {"entries": [entry(5, conversation="c-now", foreign=True)]}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_the_name(why: str, name: int, given: dict[str, Any]) -> None:
    assert chosen(*given.pop("entries", []), **given) == f"worker-box-{name}"


def test_other_doors_have_other_names() -> None:
    reviewer = DoorId(DOOR.url, "b", "reviewer")
    assert chosen(entry(1), door=reviewer) == "reviewer-box-1"


def test_above_a_number_of_places_names_are_used_again() -> None:
    """A host that starts in a new temporary folder each time makes no agent each time."""
    places = [entry(n, Place("codex", f"/tmp/{n}"), used_at=NOW - n) for n in range(1, PLACES + 1)]
    assert chosen(*places[1:]) == "worker-box-1"
    assert chosen(*places) == f"worker-box-{PLACES}"  # used longest ago
    assert chosen(*places, taken={f"worker-box-{PLACES}"}) == f"worker-box-{PLACES - 1}"
    everybody = {one.name for one in places}
    assert chosen(*places, taken=everybody) == f"worker-box-{PLACES + 1}"


def test_remembering_replaces_and_is_bounded() -> None:
    entries = remember([entry(1), entry(2)], entry(1, held=True, used_at=NOW))
    assert [(one.name, one.held) for one in entries] == [("worker-box-2", False), ("worker-box-1", True)]
    many = [entry(n, used_at=float(n)) for n in range(LIMIT)]
    kept = remember(many, entry(LIMIT, used_at=float(LIMIT)))
    assert (len(kept), kept[0].name, kept[-1].name) == (LIMIT, "worker-box-1", f"worker-box-{LIMIT}")


def test_a_name_is_found_by_where_it_is() -> None:
    reviewer = entry(1, door=DoorId(DOOR.url, "b", "reviewer"))
    other = entry(1, door=DoorId("http://127.0.0.1:2/mcp", "b", "worker"))
    assert find([entry(1), reviewer, other, entry(2)], DOOR.url, "b", "worker-box-1") == [entry(1), reviewer]


PLACES_OF_A_DAY = [HOME, ELSEWHERE, Place("zed", "/x")]
starts = st.lists(st.tuples(st.sampled_from(PLACES_OF_A_DAY), st.booleans(), st.integers(0, 12 * 86400)), max_size=30)


@given(starts, st.sets(st.integers(1, 5)))
def test_whatever_starts_and_ends_nobody_shares_and_everybody_comes_back(
    days: list[tuple[Place, bool, int]], of_bridges: set[int]
) -> None:
    """Conversations start, in any place, and end; each start is a choice, remembered at once."""
    entries: list[Entry] = []
    now, number = NOW, 0
    living: dict[str, Place] = {}
    used = [f"worker-box-{n}" for n in of_bridges]
    for place, ends, pause in days:
        now, number = now + pause, number + 1
        wish = Wish(DOOR, place, f"c-{number}")
        own = {e.name for e in entries if e.place == place} - living.keys()
        name = choose(entries, wish, taken=living.keys(), used=used, hostname="box", now=now)
        assert name not in living
        assert name not in {f"worker-box-{n}" for n in of_bridges}
        assert not own or name in own  # its place's own name comes back
        new = name not in used
        # A new one only if every known one lives or belongs to another place that still uses it.
        assert not new or all(e.name in living or now - e.used_at <= GIVEN_UP_S for e in entries)
        used += [name] if new else []
        entries = remember(entries, Entry(DOOR, name, place, f"c-{number}", used_at=now))
        assert choose(entries, wish, taken={}, used=used, hostname="box", now=now) == name  # it may ask again
        if ends:
            continue
        living[name] = place
        if len(living) > 3:
            del living[next(iter(living))]
