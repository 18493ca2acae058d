"""rules/capabilities: what a join declares (bridge.md §6.1)."""

import pytest

from pursersd.rules.capabilities import capabilities
from pursersd.rules.environment import Reader
from pursersd.rules.hosts import profile


def declared(host: str = "claude-code", **environ: str) -> tuple[dict[str, object] | None, list[str]]:
    found = Reader(environ)
    return capabilities(found, profile(host, None)[0]), found.problems


def test_nothing_is_declared_by_default() -> None:
    assert declared() == (None, [])
    assert declared(PURSERS_SKILLS="  ", PURSERS_MODEL="") == (None, [])


BASE = {"host": "claude-code", "max_parallel": 1}


@pytest.mark.parametrize(
    ("environ", "more"),
    [
        ({"PURSERS_TIER_MAX": " 3 "}, {"tier_max": 3}),
        ({"PURSERS_SKILLS": "b, a,b,,"}, {"skills": ["a", "b"]}),
        ({"PURSERS_SKILLS": ","}, {"skills": []}),
        ({"PURSERS_CAN_REVIEW": "Yes"}, {"can_review": True}),
        ({"PURSERS_CAN_WORK": "off"}, {"can_work": False}),
        ({"PURSERS_MODEL": " m ", "PURSERS_PROVIDER": "p"}, {"model": "m", "provider": "p"}),
        ({"PURSERS_MODEL": "m", "PURSERS_LEGACY_TOOLS": "1"}, {"model": "m", "legacy_tools": True}),
    ],
)
def test_any_capability_variable_declares_the_seat(environ: dict[str, str], more: dict[str, object]) -> None:
    assert declared(**environ) == ({**BASE, **more}, [])


def test_legacy_tools_alone_declare_just_that() -> None:
    assert declared(PURSERS_LEGACY_TOOLS="1") == ({"legacy_tools": True}, [])
    assert declared(PURSERS_LEGACY_TOOLS="true") == (None, [])


def test_an_unknown_host_is_declared_as_the_profile_that_it_got() -> None:
    found, _ = declared("mine", PURSERS_MODEL="m")
    assert found == {"host": "codex", "max_parallel": 1, "model": "m"}


@pytest.mark.parametrize("value", ["1", "true", "YES", "on"])
def test_true(value: str) -> None:
    assert declared(PURSERS_CAN_WORK=value)[0] == {**BASE, "can_work": True}


@pytest.mark.parametrize("value", ["0", "false", "NO", "off"])
def test_false(value: str) -> None:
    assert declared(PURSERS_CAN_WORK=value)[0] == {**BASE, "can_work": False}


@pytest.mark.parametrize("tier", ["0", "4", "two", "1.0"])
def test_a_bad_tier(tier: str) -> None:
    assert declared(PURSERS_TIER_MAX=tier)[1] == [
        "PURSERS_TIER_MAX must be 1, 2, or 3. Set it to one of these, or unset it."
    ]
