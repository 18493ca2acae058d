"""Conversations that have nothing but a stored door: who they are, that they stay who they are, and what is shown of it."""

import json
import signal
from pathlib import Path

import pytest

from pursersd.rules.door import decode
from pursersd.state.doors import Doors
from rig.central import WORKER_SCOPE, Central
from rig.daemon import Home
from rig.doors import packed
from rig.shim import ShimProcess, ToolError
from rig.wait import until
from system.scene import PATIENCE, Json, ask, rows, until_listed

COLLISION = "seat name already active under this principal; choose another name or pass allow_takeover=true"


class Place:
    """A home with a door for a fresh board, and conversations that were told nothing else."""

    def __init__(self, central: Central, home: Home, board: str) -> None:
        self.central, self.home, self.board = central, home, board
        self.token = central.worker("ann", board)
        self.doors = Doors(home.folder / "state")

    def store(self) -> None:
        self.doors.store(decode(packed(self.central.url, self.board, "worker", self.token)))

    def open(self, **extra: str) -> ShimProcess:
        shim = self.home.shim(self.home.environment(role=None, extra=extra))
        shim.initialize()
        return shim

    def seat(self, shim: ShimProcess) -> str:
        """Its name, after its first call."""
        with pytest.raises(ToolError, match="has no project registry"):  # it joined; a wait would take longer
            shim.call_tool("project_registry_get")
        return next(row["seat"] for row in rows(self.home) if row["shim_pid"] == shim.pid)

    def close(self, shim: ShimProcess) -> None:
        shim.close()
        until(lambda: shim.pid not in [row["shim_pid"] for row in rows(self.home)], PATIENCE, "it is gone")

    @property
    def used(self) -> list[str]:
        (door,) = self.doors.load()
        return list(door.seat_names_used)

    @property
    def agents(self) -> list[str]:
        """The seats of the board at Central, without its admin's."""
        status = self.central.call(self.central.admin, "board_status", board_id=self.board, include_retired=True)
        return sorted(agent["agent_name"] for agent in status["agents"] if agent["agent_name"] != "boss")


@pytest.fixture
def place(central: Central, home: Home, board: str) -> Place:
    return Place(central, home, board)


def number(name: str) -> int:
    """The n of `worker-<host>-<n>`."""
    stem, _, last = name.rpartition("-")
    assert stem.startswith("worker-")
    return int(last)


def test_a_conversation_gets_its_own_name_back_and_nothing_grows(place: Place) -> None:
    """Through its end, a restart of the daemon, and the end of both."""
    place.store()
    prober = place.open()
    prober.request("tools/list")
    place.close(prober)
    assert place.used == []  # who only looks takes no name

    first, second = place.open(), place.open()
    names = [place.seat(first), place.seat(second)]
    assert [number(name) for name in names] == [1, 2]
    assert place.used == names

    place.close(first)
    again = place.open()
    assert place.seat(again) == names[0]

    place.home.daemons()[0].kill()
    assert {place.seat(shim) for shim in (second, again)} == set(names)
    assert place.seat(again) == names[0]

    for shim in (second, again):
        place.close(shim)
    assert place.home.ctl("stop").returncode == 0
    assert place.home.ctl("start").returncode == 0
    back = place.open()
    assert place.seat(back) in names
    assert place.seat(place.open(PURSERS_HOST="zed")).rpartition("-")[2] == "3"  # another kind of host is somebody else
    assert place.agents == place.used
    assert len(place.used) == 3


def test_who_comes_first_after_a_crash_takes_nobodys_name(place: Place) -> None:
    """Its shim lives and will be back; until then the name is its own."""
    place.store()
    first = place.open()
    name = place.seat(first)
    first.process.send_signal(signal.SIGSTOP)
    try:
        place.home.daemons()[0].kill()
        assert number(place.seat(place.open())) == 2
    finally:
        first.process.send_signal(signal.SIGCONT)
    assert place.seat(first) == name


def test_a_seat_of_somebody_else_is_not_taken_over(place: Place) -> None:
    place.store()
    probe = place.open()
    taken = place.seat(probe)
    place.close(probe)
    # The same folder on another machine: nothing is remembered here, and the seat is alive at Central.
    for file in (place.home.folder / "state").glob("names.json"):
        file.unlink()
    place.doors.forget(place.board, "worker")
    place.store()
    assert place.home.ctl("restart").returncode == 0
    shim = place.open()
    result = shim.call_tool("a2a_wait", {"timeout_s": 1, "since_seq": 0})
    assert result["error"]["cause_class"] == "central"
    assert result["error"]["detail"] == COLLISION
    assert (number(taken), number(place.seat(shim))) == (1, 2)  # at the next call it is another one


def test_a_door_that_is_stored_later_is_used_at_the_next_call(place: Place) -> None:
    shim = place.open()
    with pytest.raises(ToolError, match="or store a door with: pursersctl join"):
        shim.call_tool("project_registry_get")
    place.store()
    assert number(place.seat(shim)) == 1


def test_two_boards_fail_closed_and_the_variable_decides(place: Place) -> None:
    place.store()
    place.doors.store(decode(packed(place.central.url, "another", "worker", place.central.mint("ann", WORKER_SCOPE))))
    with pytest.raises(ToolError, match=r"multiple stored boards; set ONBOARD_BOARD_ID\. Stored are the doors another"):
        place.open().call_tool("project_registry_get")
    assert number(place.seat(place.open(ONBOARD_BOARD_ID=place.board))) == 1


def test_a_damaged_file_is_a_text_for_those_who_need_it_and_nothing_for_others(place: Place) -> None:
    place.store()
    (place.home.folder / "state" / "doors.json").write_text("{")
    with pytest.raises(ToolError, match=r"doors\.json is unreadable or invalid"):
        place.open().call_tool("project_registry_get")
    complete = place.home.environment(place.central.url, place.token, place.board, "whole")
    shim = place.home.shim(complete)
    shim.initialize()
    assert place.seat(shim) == "whole"


# --- what is shown ----------------------------------------------------------------------------------------------------


def settings(home: Home, which: object) -> dict[str, Json]:
    done = home.ctl("status", "--conversation", str(which), "--json")
    assert done.returncode == 0, done.stderr
    return {setting["name"]: setting for setting in json.loads(done.stdout)["settings"]}


def test_each_value_is_shown_with_its_origin(place: Place, tmp_path: Path) -> None:
    place.store()
    (door,) = place.doors.load()
    shim = place.open(PURSERS_HOST="claude-code", PURSERS_TIER_MAX="2")
    assert settings(place.home, shim.pid)["agent_name"]["value"] is None
    name = place.seat(shim)
    shown = settings(place.home, shim.pid)
    assert {key: (one["origin"], one["origin_name"]) for key, one in shown.items() if one["origin"] != "default"} == {
        "url": ("door", door.kid),
        "token": ("door", door.kid),
        "board": ("door", door.kid),
        "role": ("door", door.kid),
        "agent_name": ("automatic", None),
        "host": ("variable", "PURSERS_HOST"),
        "capabilities": ("variable", "PURSERS_TIER_MAX"),
    }
    assert (shown["board"]["value"], shown["agent_name"]["value"]) == (place.board, name)
    assert shown["token"]["value"] == f"{door.kid}/{door.token.fingerprint[:6]}"

    row = next(row for row in until_listed(place.home, 1))
    detail = json.loads(place.home.ctl("status", "--conversation", row["conversation"][:6], "--json").stdout)
    (seat,) = detail["seats"]
    assert detail["doors"] == str(place.doors.folder)
    assert detail["stats"] == str(place.home.folder / "bridge-stats.json")
    status = place.central.call(place.central.admin, "board_status", board_id=place.board)
    agent = next(agent for agent in status["agents"] if agent["agent_name"] == name)
    assert {key: seat[key] for key in ("agent_id", "principal_id", "role")} == {
        key: agent[key] for key in ("agent_id", "principal_id", "role")
    }
    assert (seat["shared_by"], seat["claim_ttl_s"], seat["generation"]) == (1, 900, None)

    file = tmp_path / "token"
    file.write_text(place.token)
    filed = place.open(ONBOARD_CENTRAL_TOKEN_FILE=str(file), ONBOARD_AGENT_NAME="ann", ONBOARD_AGENT_INSTANCE="2")
    shown = settings(place.home, filed.pid)
    assert (shown["token"]["origin"], shown["token"]["origin_name"]) == ("file", "ONBOARD_CENTRAL_TOKEN_FILE")
    assert (shown["agent_name"]["value"], shown["agent_name"]["origin_name"]) == (
        "ann-2",
        "ONBOARD_AGENT_NAME, ONBOARD_AGENT_INSTANCE",
    )

    for which in (name, str(shim.pid)):
        text = place.home.ctl("status", "--conversation", which).stdout
        assert f"door {door.kid[:10]}" in text
        assert seat["agent_id"] in text
        for part in place.token.split(".")[1:]:
            assert part not in text


def test_problems_are_shown_and_an_unknown_conversation_is_one(place: Place) -> None:
    shim = place.open(PURSERS_TIER_MAX="9", PURSERS_WAIT_MODE="pull")
    detail = ask(place.home, "conversation", which=str(shim.pid))
    assert [problem.partition(".")[0] for problem in detail["problems"]] == [
        "ONBOARD_CENTRAL_TOKEN is not set",
        "PURSERS_TIER_MAX must be 1, 2, or 3",
    ]
    assert detail["notes"] == ["PURSERS_WAIT_MODE must be push or poll; using push"]
    place.open()
    for which, code in (("nobody", "unknown_conversation"), ("c-", "ambiguous_conversation")):
        done = place.home.ctl("status", "--conversation", which, "--json")
        assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (1, code)
