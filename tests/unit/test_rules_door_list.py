"""rules/door_list and rules/seat_name: one door per board and role, and the names that its seats have used."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.errors import DoorsError
from pursersd.rules import door_list, seat_name
from pursersd.rules.door import Door, decode
from rig.doors import packed, token

FIRST, SECOND = (decode(packed(b="b", t=token(kid))) for kid in ("k-1", "k-2"))
NOW, LATER = "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"


def store(doors: tuple[Door, ...], door: Door, *, rotate: bool = False, at: str = NOW) -> tuple[Door, ...]:
    return door_list.stored(doors, door, rotate=rotate, joined_at=at)


def test_the_list_stays_sorted() -> None:
    doors = store(store(store((), FIRST), decode(packed(b="a"))), decode(packed(b="b", r="reviewer")))
    assert [(door.board, door.role) for door in doors] == [("a", "worker"), ("b", "reviewer"), ("b", "worker")]


def test_the_same_token_may_come_again_with_another_url() -> None:
    moved = decode(packed(u="http://localhost:1/mcp", t=token("k-1")))
    (door,) = store(store((), FIRST), moved, at=LATER)
    assert (door.url, door.joined_at) == ("http://localhost:1/mcp", LATER)


def test_another_token_wants_rotation() -> None:
    with pytest.raises(DoorsError, match=r"^a door already exists for this board and role; use --rotate$"):
        store(store((), FIRST), SECOND)


def test_rotation_wants_a_door() -> None:
    other = store((), decode(packed(b="b", r="reviewer")))
    with pytest.raises(DoorsError, match=r"^--rotate requires an existing door for the same board and role$"):
        store(other, FIRST, rotate=True)


def test_rotation_keeps_the_names() -> None:
    doors, _ = door_list.reserved(store((), FIRST), "b", "worker", "somebody", "")
    (door,) = store(doors, SECOND, rotate=True, at=LATER)
    assert (door.kid, door.joined_at, door.seat_names_used) == ("k-2", LATER, ("somebody",))


def test_a_door_is_forgotten() -> None:
    doors = store(store((), FIRST), decode(packed(b="b", r="reviewer")))
    assert [door.role for door in door_list.forgotten(doors, "b", "worker")] == ["reviewer"]
    assert door_list.forgotten(doors, "c", "worker") == doors


def test_names_are_reserved_once_and_counted_up() -> None:
    doors = store((), FIRST)
    for expected in ("worker-box-1", "worker-box-2"):
        doors, name = door_list.reserved(doors, "b", "worker", None, "box.example")
        assert name == expected
    for _ in range(2):
        doors, name = door_list.reserved(doors, "b", "worker", "me", "box")
    assert doors[0].seat_names_used == ("worker-box-1", "worker-box-2", "me")


def test_a_name_needs_a_door_and_must_be_safe() -> None:
    with pytest.raises(DoorsError, match=r"^no stored door matches the selected board and role$"):
        door_list.reserved((), "b", "worker", None, "box")
    with pytest.raises(DoorsError, match=r"^seat name must be a safe 1-80 character identifier$"):
        door_list.reserved(store((), FIRST), "b", "worker", "-", "box")


@pytest.mark.parametrize("name", ["a", "A9", "0", "a.b_c-d", "a" * 80])
def test_safe_names(name: str) -> None:
    assert seat_name.is_safe(name)


@pytest.mark.parametrize("name", ["", ".", "-a", "_a", "a b", "a/b", "ä", "a" * 81, "a\n"])
def test_unsafe_names(name: str) -> None:
    assert not seat_name.is_safe(name)


@pytest.mark.parametrize(
    ("hostname", "name"),
    [
        ("Box.example.org", "worker-box-1"),
        ("", "worker-host-1"),
        (".example", "worker-host-1"),
        ("--", "worker-host-1"),
        ("my box!", "worker-my-box-1"),
        ("a" * 99, f"worker-{'a' * 66}-1"),
        ("a" * 65 + "-b", f"worker-{'a' * 65}-1"),
    ],
)
def test_automatic_names(hostname: str, name: str) -> None:
    assert seat_name.automatic("worker", hostname, ()) == name


@given(st.text(max_size=99), st.sampled_from(["worker", "reviewer", "coordinator", "orchestrator"]))
def test_every_automatic_name_is_safe(hostname: str, role: str) -> None:
    taken = {f"{role}-{seat_name.short_host(hostname, 72 - len(role))}-{n}" for n in range(1, 12)}
    name = seat_name.automatic(role, hostname, taken)
    assert seat_name.is_safe(name)
    assert re.fullmatch(rf"{role}-.*-12", name)
