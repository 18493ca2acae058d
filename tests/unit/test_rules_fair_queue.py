"""rules/fair_queue: each in turn, nobody above its share, nothing lost."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from pursersd.rules.fair_queue import FairQueue


def test_parties_take_turns_and_each_keeps_its_own_order() -> None:
    queue: FairQueue[str] = FairQueue(slots=1, share=1)
    assert queue.enter("a", "a1") == ["a1"]
    for party, entry in (("a", "a2"), ("a", "a3"), ("b", "b1"), ("b", "b2"), ("c", "c1")):
        assert queue.enter(party, entry) == []
    served, holder = [], "a1"
    while following := queue.leave(holder[0], holder):
        (holder,) = following
        served.append(holder)
    assert served == ["a2", "b1", "c1", "a3", "b2"]


def test_nobody_holds_more_than_its_share() -> None:
    queue: FairQueue[str] = FairQueue(slots=4, share=2)
    assert [queue.enter("a", f"a{n}") for n in range(4)] == [["a0"], ["a1"], [], []]
    assert queue.enter("b", "b0") == ["b0"]
    assert repr(queue) == "<FairQueue 3 of 4 held, 2 waiting>"
    assert queue.leave("b", "b0") == []
    assert queue.leave("a", "a0") == ["a2"]


def test_one_that_leaves_the_line_is_not_called() -> None:
    queue: FairQueue[str] = FairQueue(slots=1, share=1)
    queue.enter("a", "a0")
    queue.enter("a", "a1")
    queue.enter("b", "b0")
    assert queue.leave("a", "a1") == []
    assert queue.leave("a", "a0") == ["b0"]
    assert queue.leave("b", "b0") == []
    assert repr(queue) == "<FairQueue 0 of 1 held, 0 waiting>"


@settings(max_examples=200)
@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30), st.booleans()), max_size=60),
)
def test_whatever_happens_everybody_is_called_once_and_never_too_many(
    slots: int, share: int, steps: list[tuple[str, int, bool]]
) -> None:
    queue: FairQueue[int] = FairQueue(slots, share)
    here: dict[int, str] = {}
    called: list[int] = []
    for number, (party, pick, leaves) in enumerate(steps):
        if leaves and here:
            gone = sorted(here)[pick % len(here)]
            called += queue.leave(here.pop(gone), gone)
        else:
            here[number] = party
            called += queue.enter(party, number)
        held = Counter(here[entry] for entry in called if entry in here)
        assert sum(held.values()) <= slots
        assert all(count <= share for count in held.values())
        waits = Counter(party for entry, party in here.items() if entry not in called)
        assert sum(held.values()) == slots or all(held[party] == share for party in waits)  # nobody waits in vain
    while here:
        gone = min(here)
        called += queue.leave(here.pop(gone), gone)
    assert len(called) == len(set(called))
    assert queue.is_empty
