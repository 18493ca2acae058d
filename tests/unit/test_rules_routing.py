"""rules/routing: routes of events as the real bridge gives them (bridge.md §2.7)."""

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pursersd.rules.routing import Refusal, Route, is_claimable_call, resolve, route
from rig import wait_oracle
from rig.wait_oracle import bridge

Json = Any

QUICK = settings(max_examples=300)
URL = "https://git.example/a/mill"


def registry(**projects: Json) -> Json:
    return {
        "schema_version": 1,
        "projects": {
            name: {"board_id": "b", "work_dir": f"/w/{name}", "status": "active", **fields}
            for name, fields in projects.items()
        },
    }


def same_as_bridge(events: list[Json], known: Json, claimable_call: bool) -> list[Json]:
    """The events with our routes, which are the bridge's."""
    before = copy.deepcopy(events)
    found = route(events, known, claimable_call=claimable_call)
    expected = bridge._enrich_registry_routes({"events": before}, known, claimable=claimable_call)["events"]
    assert found == expected
    assert events == before
    return found


SEATS = {"fleet_clone_dir": "/f/mill", "repository_url": URL}
BAD_URL = "target_url repository URL must be an exact credential-free HTTPS repository URL without query or fragment"
UNKNOWN_URL = (
    "target_url repository URL is not registered for board 'b'; "
    "configure the project's exact project_registry repository_url"
)


@pytest.mark.parametrize(
    ("target", "projects", "code", "message"),
    [
        (
            "https://[",
            {},
            "target_url_malformed",
            "target_url must be a valid legacy project/path or credential-free HTTPS repository URL",
        ),
        *[
            (target, {"mill": SEATS}, "target_url_malformed", BAD_URL)
            for target in (
                f" {URL}",
                f"{URL} ",
                "http://git.example/a/mill",
                "mill:src",
                "//git.example/a/mill",
                "https://git.example",
                "https://git.example/",
                "https:///a/mill",
                "https://me@git.example/a/mill",
                "https://:x@git.example/a/mill",
                f"{URL}?x",
                f"{URL}#x",
            )
        ],
        (URL, {}, "repository_url_not_registered", UNKNOWN_URL),
        (f"{URL}/", {"mill": SEATS}, "repository_url_not_registered", UNKNOWN_URL),
        (URL, {"mill": {**SEATS, "status": "paused"}}, "repository_url_not_registered", UNKNOWN_URL),
        (URL, {"mill": {**SEATS, "fleet": False}}, "repository_url_not_registered", UNKNOWN_URL),
        (URL, {"mill": {**SEATS, "fleet": False, "board_id": "c"}}, "repository_url_not_registered", UNKNOWN_URL),
        (URL, {"mill": {**SEATS, "board_id": "c"}}, "repository_url_board_mismatch", UNKNOWN_URL),
        (
            URL,
            {"mill": SEATS, "kiln": SEATS},
            "repository_url_ambiguous",
            "target_url matches multiple active projects on board 'b'",
        ),
        *[
            (
                target,
                projects,
                "project_route_not_registered",
                "target_url must begin with a project registered for board 'b'",
            )
            for target, projects in (
                ("mill/src", {}),
                ("mill/src", {"mill": {"board_id": "c"}}),
                ("mill/src", {"mill": {"status": "paused"}}),
                ("mill/src", {"mill": {"fleet": False}}),
                ("", {"mill": {}}),
                (" mill", {"mill": {}}),
                ("src/mill", {"mill": {}}),
            )
        ],
        (
            "mill/src",
            {"Mill": {}, "kiln": {"work_dir": "/v/MILL"}},
            "project_route_ambiguous",
            "target_url matches multiple active projects on board 'b'",
        ),
    ],
)
def test_targets_that_lead_nowhere(target: str, projects: Json, code: str, message: str) -> None:
    known = registry(**projects)
    assert resolve(known, "b", target) == Refusal(code, message)  # type: ignore[arg-type]
    event = {"board_id": "b", "target_url": target, "work_dir": "/old", "seq": 3}
    assert same_as_bridge([event], known, claimable_call=True) == []
    assert same_as_bridge([event], known, claimable_call=False) == [
        {"board_id": "b", "target_url": target, "seq": 3, "routing_error": {"code": code, "message": message}}
    ]


@pytest.mark.parametrize(
    ("target", "fields", "expected"),
    [
        ("mill/src", {}, Route("mill", "/w/mill", "/w/mill")),
        ("MILL", {}, Route("mill", "/w/mill", "/w/mill")),
        ("Maß/x", {"work_dir": "/w/MASS"}, Route("mill", "/w/MASS", "/w/MASS")),
        ("folder/x", {"work_dir": "/w/Folder/"}, Route("mill", "/w/Folder/", "/w/Folder/")),
        ("mill", {"work_dir_owner": "fleet"}, Route("mill", "/w/mill", None)),
        ("mill", {"fleet_clone_dir": "/f/mill"}, Route("mill", "/f/mill", "/w/mill")),
        (URL, SEATS, Route("mill", "/f/mill", "/w/mill")),
        ("", {"work_dir": "/"}, Route("mill", "/", "/")),
    ],
)
def test_targets_that_lead_to_a_project(target: str, fields: Json, expected: Route) -> None:
    known = registry(mill=fields)
    assert resolve(known, "b", target) == expected
    assert isinstance(resolve(known, "c", target), Refusal)
    told = same_as_bridge([{"board_id": "b", "target_url": target}], known, claimable_call=False)
    assert told == [{"board_id": "b", "target_url": target, "work_dir": expected.work_dir}]
    # The operator's checkout is for no seat; a clone of the fleet is.
    claimable = same_as_bridge([{"board_id": "b", "target_url": target}], known, claimable_call=True)
    assert claimable == ([] if expected.work_dir == expected.operator_dir else told)


def test_news_of_work_in_hand_are_told_wherever_they_lead() -> None:
    """The registry may have changed since the seat took it."""
    event = {"board_id": "b", "target_url": "nobody/x", "reason": "held_ticket_update"}
    (told,) = route([event], registry(mill={}), claimable_call=True)
    assert told["routing_error"]["code"] == "project_route_not_registered"
    own = {**event, "target_url": "mill"}
    assert route([own], registry(mill={}), claimable_call=True) == [{**own, "work_dir": "/w/mill"}]
    assert route([{**event, "reason": "broadcast"}], registry(mill={}), claimable_call=True) == []


def test_an_event_without_a_target_gets_the_only_folder_of_its_board() -> None:
    event = {"board_id": "b", "kind": "ticket_backlog"}
    fleet = {"fleet_clone_dir": "/f/x"}
    two = registry(mill=fleet, kiln={**fleet, "fleet": False}, moor={**fleet, "status": "paused", "work_dir": "/v"})
    assert same_as_bridge([event], two, claimable_call=True) == [{**event, "work_dir": "/f/x"}]
    same_folder = registry(mill=fleet, kiln=fleet)
    assert same_as_bridge([event], same_folder, claimable_call=True) == [{**event, "work_dir": "/f/x"}]
    assert same_as_bridge([event], registry(mill={}, kiln={}), claimable_call=False) == [event]
    assert same_as_bridge([{"kind": "x"}], registry(mill={}), claimable_call=True) == [{"kind": "x"}]


def test_the_operator_s_checkout_is_told_to_be_read_only() -> None:
    event = {"board_id": "b", "kind": "ticket_backlog"}
    refused = {
        "work_dir": "/w/mill",
        "claim_refused": True,
        "claim_refusal_code": "operator_checkout_read_only",
        "claim_refusal_reason": "operator checkout is read-only for seats",
    }
    assert same_as_bridge([event], registry(mill={}), claimable_call=True) == [{**event, **refused}]
    assert same_as_bridge([event], registry(mill={}), claimable_call=False) == [{**event, "work_dir": "/w/mill"}]
    # Also the checkout of a project on which seats do not work, and also when another project's route leads there.
    shared = registry(mill={"work_dir_owner": "fleet"}, kiln={"work_dir": "/w/mill", "fleet": False})
    target = {**event, "target_url": "mill"}
    assert same_as_bridge([event, target], shared, True) == [{**event, **refused}, {**target, **refused}]


def test_folders_are_compared_behind_their_symlinks(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    known = registry(
        mill={"work_dir": str(tmp_path / "real"), "fleet_clone_dir": str(tmp_path / "link")},
        kiln={"work_dir": "/w/kiln/../kiln", "fleet_clone_dir": "/w//kiln"},
    )
    mill, kiln = {"board_id": "b", "target_url": "mill"}, {"board_id": "b", "target_url": "kiln"}
    assert same_as_bridge([{**mill, "target_url": "real"}, kiln], known, claimable_call=True) == []
    assert route([mill], known, claimable_call=True, real_path=lambda path: path) == [
        {**mill, "work_dir": str(tmp_path / "link")}
    ]


@pytest.mark.parametrize("broken", [ValueError("embedded null byte"), OSError("loop")])
def test_a_folder_that_cannot_be_looked_at_is_only_itself(broken: Exception) -> None:
    def real_path(path: str) -> str:
        raise broken

    known = registry(mill={"work_dir": "/w/\0", "fleet_clone_dir": "/w//\0"}, kiln={"fleet_clone_dir": "/f/\0"})
    events = [{"board_id": "b", "target_url": name} for name in ("mill", "kiln")]
    assert [event["target_url"] for event in route(events, known, claimable_call=True, real_path=real_path)] == ["kiln"]
    assert len(route(events, known, claimable_call=False)) == 2
    assert [event["target_url"] for event in route(events, known, claimable_call=True)] == ["kiln"]


def test_a_call_without_targets_or_for_submissions_looks_at_no_folder() -> None:
    def real_path(path: str) -> str:
        raise AssertionError(path)

    events = [{"board_id": "b", "target_url": "mill"}, {"board_id": "b"}]
    known = registry(mill={"fleet_clone_dir": "/f/mill"})
    assert len(route(events, known, claimable_call=False, real_path=real_path)) == 2
    fleet = registry(mill={"work_dir_owner": "fleet"})
    assert len(route(events, fleet, claimable_call=True, real_path=real_path)) == 2


@pytest.mark.parametrize("wait_for", ["auto", "claimable", "submitted"])
@pytest.mark.parametrize("role", ["worker", "reviewer", "coordinator", "orchestrator", None])
def test_claimable_calls(wait_for: Any, role: str | None) -> None:
    expected = wait_for == "claimable" or (wait_for == "auto" and role == "worker")
    assert is_claimable_call(wait_for, role) is wait_oracle.claimable(wait_for, role) is expected


boards = st.sampled_from(["b", "c"])
folders = st.sampled_from(["/w/mill", "/w/kiln", "/w/Mill/", "/f/mill", "/w/x/../mill", "/"])
projects = st.dictionaries(
    st.sampled_from(["mill", "Mill", "kiln", "ß"]),
    st.fixed_dictionaries(
        {"board_id": boards, "work_dir": folders, "status": st.sampled_from(["active", "active", "paused"])},
        optional={
            "fleet": st.booleans(),
            "work_dir_owner": st.sampled_from(["fleet", "operator"]),
            "fleet_clone_dir": folders,
            "repository_url": st.sampled_from([URL, f"{URL}2"]),
        },
    ),
    max_size=4,
)
targets = st.sampled_from(
    [
        "mill/x",
        "MILL",
        "kiln",
        "ss/x",
        "x/y",
        "",
        "mill:x",
        URL,
        f"{URL}2",
        f"{URL}3",
        f"{URL}?",
        "\thttps://x/y",
        7,
        None,
    ]
)
events = st.fixed_dictionaries(
    {"seq": st.integers(0, 9)},
    optional={
        "board_id": st.sampled_from(["b", "c", "d"]),
        "target_url": targets,
        "work_dir": st.sampled_from(["/w/mill", "/other", "", None, 5]),
    },
)


@QUICK
@given(projects, st.lists(events, max_size=4), st.booleans())
def test_every_event_is_routed_as_the_bridge_routes_it(known: Json, told: list[Json], claimable_call: bool) -> None:
    same_as_bridge(told, {"schema_version": 1, "projects": known}, claimable_call)


@QUICK
@given(projects, boards, st.one_of(targets.filter(lambda t: isinstance(t, str)), st.text(max_size=12)))
def test_every_target_is_resolved_as_the_bridge_resolves_it(known: Json, board: str, target: str) -> None:
    whole = {"schema_version": 1, "projects": known}
    found = resolve(whole, board, target)
    assert found == _bridge_route(whole, board, target)


def _bridge_route(known: Json, board: str, target: str) -> Route | Refusal:
    try:
        expected = bridge.resolve_registry_target(known, board, target)
    except ValueError as error:
        return Refusal(error.code, str(error))  # type: ignore[attr-defined]
    return Route(expected["project"], expected["work_dir"], expected["operator_work_dir"])
