"""rules/selection: the boards of a wait, as the real bridge chooses them (bridge.md §2.3, §2.5)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pursersd.errors import PursersError, RegistryError, ToolFailed
from pursersd.rules.selection import Selection, select, wants_registry
from rig import wait_oracle
from rig.wait_oracle import HOME

Json = Any

QUICK = settings(max_examples=200)


def project(board: str, **fields: Json) -> Json:
    return {"board_id": board, "work_dir": "/w", "status": "active", **fields}


REGISTRY: Json = {
    "schema_version": 1,
    "projects": {
        "one": project("b"),
        "two": project("a"),
        "again": project("b"),
        "home": project(HOME),
        "paused": project("p", status="paused"),
        "operator": project("o", fleet=False),
        "three": project("c"),
    },
}
GONE = ToolFailed("board_state_get", "state key not found")


def chosen(boards: Json, since_seq: Json = 5, boards_filter: str | None = None, registry: Json = REGISTRY) -> Selection:
    """Our selection, which is the bridge's."""
    wanted = wants_registry(boards, boards_filter)
    found = select(boards, since_seq, home=HOME, boards_filter=boards_filter, registry=registry if wanted else None)
    asked = list(boards) if isinstance(boards, tuple) else boards
    expected = wait_oracle.choose(asked, since_seq, boards_filter, registry)
    assert wanted is expected.read
    assert found == Selection(
        expected.boards, expected.shape, expected.cursors, expected.routed, expected.registry_warning
    )
    assert list(found.cursors) == list(found.boards)
    return found


@pytest.mark.parametrize("boards_filter", [None, "registry", "home", "a,b"])
@pytest.mark.parametrize("cursor", [None, 0, 7])
def test_without_boards_it_is_the_home_board_whatever_the_filter(cursor: int | None, boards_filter: str | None) -> None:
    assert chosen(None, cursor, boards_filter) == Selection((HOME,), "single", {HOME: cursor})


def test_a_list_is_taken_as_it_is() -> None:
    assert chosen(("b", "x"), 5) == Selection(("b", "x"), "multi", {"b": 5, "x": 5})
    assert chosen(("b", "x"), None) == Selection(("b", "x"), "multi", {"b": None, "x": None})
    assert chosen(("b", "x"), {"x": 3, "y": 4}) == Selection(("b", "x"), "multi", {"b": 0, "x": 3})
    assert chosen(("b", "x"), {}) == Selection(("b", "x"), "multi", {"b": 0, "x": 0})
    assert chosen(("b", "x"), 5, "a,c").boards == ("b", "x")


def test_the_registry_s_boards_are_home_and_the_active_ones_in_order() -> None:
    found = chosen("registry", {HOME: 1, "b": 2, "p": 9})
    assert found == Selection((HOME, "b", "a", "c"), "multi", {HOME: 1, "b": 2, "a": 0, "c": 0}, routed=True)


@pytest.mark.parametrize(
    ("boards_filter", "boards"),
    [
        ("", (HOME, "b", "a", "c")),
        ("  ", (HOME, "b", "a", "c")),
        (" Registry ", (HOME, "b", "a", "c")),
        ("c, b,unknown,", (HOME, "b", "c")),
        (",", (HOME,)),
        ("REGISTRY,a", (HOME, "a")),
        ("home,a", (HOME, "a")),
    ],
)
def test_a_list_in_pursers_boards_narrows_the_registry(boards_filter: str, boards: tuple[str, ...]) -> None:
    found = chosen("registry", 5, boards_filter)
    assert (found.boards, found.routed) == (boards, True)


@pytest.mark.parametrize("boards", ["registry", ("x", "y")])
def test_pursers_boards_home_pins_a_call_with_boards_to_home(boards: Json) -> None:
    assert chosen(boards, {"x": 3}, " Home") == Selection((HOME,), "multi", {HOME: 0})


def test_pursers_boards_registry_widens_a_list() -> None:
    assert chosen(("x",), 5, "registry").boards == (HOME, "b", "a", "c")
    assert chosen(("x",), 5, "REGISTRY").routed


@pytest.mark.parametrize(
    ("since_seq", "cursor"), [(None, None), (5, 5), ({HOME: 7, "b": 3}, 7), ({"b": 3}, 0), ({}, 0)]
)
@pytest.mark.parametrize("error", [GONE, RegistryError("the document must be JSON. Repair it.")])
def test_without_a_registry_it_is_the_home_board_with_a_warning(
    error: PursersError, since_seq: Json, cursor: int | None
) -> None:
    warning = f"project_registry unavailable; using {HOME!r} only: {error}"
    expected = Selection((HOME,), "single", {HOME: cursor}, registry_warning=warning)
    assert chosen("registry", since_seq, registry=error) == expected
    assert chosen(("x",), since_seq, "registry", registry=error) == expected


def test_the_registry_must_have_been_read() -> None:
    with pytest.raises(AssertionError, match="must be read first"):
        select("registry", 0, home="h")


names = st.sampled_from([HOME, "a", "b", "c", "d"])
cursors = st.one_of(st.none(), st.integers(0, 9), st.dictionaries(names, st.integers(0, 9), max_size=4))
registries = st.builds(
    lambda projects: {"schema_version": 1, "projects": projects},
    st.dictionaries(
        st.sampled_from("uvwxyz"),
        st.fixed_dictionaries(
            {"board_id": names, "work_dir": st.just("/w"), "status": st.sampled_from(["active", "active", "paused"])},
            optional={"fleet": st.booleans()},
        ),
    ),
)


@QUICK
@given(
    st.one_of(st.just("registry"), st.lists(names, min_size=1, unique=True).map(tuple)),
    cursors,
    st.sampled_from([None, "registry", "home", "a", "b,c", "Home", " "]),
    st.one_of(registries, st.just(GONE)),
)
def test_every_call_selects_what_the_bridge_selects(
    boards: Json, since_seq: Json, boards_filter: str | None, registry: Json
) -> None:
    found = chosen(boards, since_seq, boards_filter, registry)
    assert len(set(found.boards)) == len(found.boards) > 0
