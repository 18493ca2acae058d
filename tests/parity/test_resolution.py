"""What a conversation with stored doors is told: by a tool of the bridge and by ours, on the same doors. Nothing here reaches a
Central; which combinations resolve to what is compared in tests/unit/test_settings_doors.py."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from pursersd.rules import door_file
from pursersd.rules.door import decode
from rig.daemon import Home
from rig.doors import packed, token
from rig.shim import BRIDGE, ShimProcess, ToolError

TOOL = "project_registry_get"


@dataclass(frozen=True)
class Case:
    """Doors as (board, role), the variables beside them, and what the answer must hold."""

    doors: tuple[tuple[str, str], ...]
    says: str
    environ: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    """What stands in the file instead."""


CASES = {
    "boards": Case((("a", "worker"), ("b", "worker")), "multiple stored boards; set ONBOARD_BOARD_ID"),
    "roles": Case((("a", "worker"), ("a", "reviewer")), "multiple stored roles; set PURSERS_ROLE"),
    "other board": Case(
        (("a", "worker"),), "no stored door matches the selected board and role", {"ONBOARD_BOARD_ID": "c"}
    ),
    "other role": Case(
        (("a", "worker"),), "no stored door matches the selected board and role", {"PURSERS_ROLE": "coordinator"}
    ),
    "nothing": Case((), "ONBOARD_CENTRAL_TOKEN is not set"),
    "damaged": Case((), "doors.json is unreadable or invalid", text="{"),
    "schema": Case((), "doors.json has an unsupported schema", text='{"schema_version":2,"doors":[]}'),
    "token file": Case(
        (("a", "worker"),), "ONBOARD_CENTRAL_TOKEN_FILE is not readable", {"ONBOARD_CENTRAL_TOKEN_FILE": "/nowhere"}
    ),
    "connector": Case(
        (("a", "worker"),),
        "split identity: wait bridge and board connector tokens differ",
        {"PURSERS_REQUIRE_TOKEN_MATCH": "1", "PURSERS_BOARD_CONNECTOR_TOKEN": "another"},
    ),
    "hidden connector": Case(
        (("a", "worker"),),
        "connector token not visible to the bridge process; see Codex env forwarding",
        {"PURSERS_REQUIRE_TOKEN_MATCH": "1"},
    ),
}


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """One daemon for all of ours."""
    with Home() as home:
        yield home


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_has_the_bridges_words_and_then_ours(home: Home, name: str) -> None:
    case = CASES[name]
    stored = home.folder / "state"  # of the private instance; the bridge is told of the same folder
    stored.mkdir(exist_ok=True)
    write(stored / "doors.json", case)
    extra = {"PURSERS_BRIDGE_STATE_DIR": str(stored), **case.environ}
    environment = home.environment(role=None, extra=extra)
    with ShimProcess([BRIDGE], environment) as bridge, home.shim(environment) as ours:
        texts = [refusal(shim) for shim in (bridge, ours)]
    said = f"Error executing tool {TOOL}: board join failed (configuration): {case.says}"
    assert texts[0] == said
    assert texts[1].startswith(said)
    assert len(texts[1]) > len(said)  # and what to do about it


def write(file: Path, case: Case) -> None:
    doors = [decode(packed(b=board, r=role, t=token(f"door-{board}-{role}-v1"))) for board, role in case.doors]
    stored = [replace(door, joined_at="2026-11-01T00:00:00+00:00") for door in doors]
    file.write_text(case.text or door_file.serialise(stored))


def refusal(shim: ShimProcess) -> str:
    shim.initialize()
    with pytest.raises(ToolError) as refused:
        shim.call_tool(TOOL)
    return refused.value.text
