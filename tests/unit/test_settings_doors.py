"""settings with stored doors: the whole table of what is set and what is stored, against the bridge's own resolver.

Each combination is resolved by the installed bridge in a process of its own, and by us; both must come to the same URL,
token, board and role, or refuse in the same words. What differs on purpose is in DIFFERENT, with its reason.
"""

import itertools
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pursersd.errors import DoorsError
from pursersd.rules import door_file
from pursersd.rules.door import Door, decode
from pursersd.rules.environment import Origin
from pursersd.settings import Settings, resolve
from rig import processes
from rig.doors import packed, token

ORACLE = """
import json, sys
import door_state
for line in sys.stdin:
    try:
        print(json.dumps(door_state.resolve(json.loads(line))))
    except ValueError as error:
        print(json.dumps({"refused": str(error)}))
"""


def door(board: str, role: str = "worker", *, url: str = "http://127.0.0.1:9001/mcp") -> Door:
    """A stored door."""
    stored = decode(packed(url, board, role, token(f"door-{board}-{role}-v1")))
    return replace(stored, joined_at="2026-11-01T00:00:00+00:00")


TOKEN, OTHER = "token-of-the-environment", "another-token"

STORED: Mapping[str, Sequence[Door]] = {
    "nothing": [],
    "alpha": [door("alpha")],
    "alpha for reviewers": [door("alpha", "reviewer", url="https://far.example/mcp")],
    "alpha twice": [door("alpha"), door("alpha", "reviewer")],
    "two boards": [door("alpha"), door("beta")],
    "two boards and roles": [door("alpha"), door("beta", "reviewer")],
    "everything": [door("alpha"), door("alpha", "reviewer"), door("beta"), door("beta", "reviewer")],
}
VALUES = {
    "ONBOARD_CENTRAL_URL": ("", "http://127.0.0.1:7/mcp"),
    "token": ("", "variable", "file", "both", "both differ", "both differ, allowed", "empty file", "no file"),
    "ONBOARD_BOARD_ID": ("", "alpha", "gamma"),
    "PURSERS_ROLE": ("", "worker", "Reviewer", "coordinator"),
}
NO_MATCH = "no stored door matches the selected board and role"

Case = tuple[str, dict[str, str]]


def tokens(kind: str, folder: Path) -> dict[str, str]:
    """The variables that give a credential in this way."""
    direct = {"ONBOARD_CENTRAL_TOKEN": TOKEN}
    file = {"ONBOARD_CENTRAL_TOKEN_FILE": str(folder / "token")}
    match kind:
        case "":
            return {}
        case "variable":
            return direct
        case "file":
            return file
        case "both":
            return direct | file
        case "both differ":
            return {"ONBOARD_CENTRAL_TOKEN": OTHER} | file
        case "both differ, allowed":
            return {"ONBOARD_CENTRAL_TOKEN": OTHER, "PURSERS_ALLOW_ENV_TOKEN": "1"} | file
        case "empty file":
            return direct | {"ONBOARD_CENTRAL_TOKEN_FILE": str(folder / "empty")}
        case _:
            return {"ONBOARD_CENTRAL_TOKEN_FILE": str(folder / "missing")}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """Every combination of what is stored and what is set."""
    folder = tmp_path_factory.mktemp("resolution")
    (folder / "token").write_text(f"{TOKEN}\n")
    (folder / "empty").write_text(" \n")
    found: list[Case] = []
    for name, doors in STORED.items():
        (folder / name).mkdir()
        (folder / name / "doors.json").write_text(door_file.serialise(doors))
        for combination in itertools.product(*VALUES.values()):
            environ = dict(zip(VALUES, combination, strict=True))
            environ |= tokens(environ.pop("token"), folder)
            found.append((name, {"PURSERS_BRIDGE_STATE_DIR": str(folder / name), **environ}))
    return found


@pytest.fixture(scope="module")
def oracle(cases: list[Case]) -> list[dict[str, Any]]:
    """What the bridge makes of each."""
    asked = "".join(json.dumps(environ) + "\n" for _, environ in cases)
    done = subprocess.run(
        [sys.executable, "-c", ORACLE],
        input=asked,
        capture_output=True,
        text=True,
        check=True,
        env=processes.environment(),
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def ours(environ: Mapping[str, str], doors: Sequence[Door]) -> Settings:
    return resolve(environ, lambda path: Path(path).read_text(), lambda: doors)


def answer(found: Settings) -> dict[str, Any]:
    """In the oracle's shape."""
    if found.problems:
        words, _, _ = found.problems[0].partition(". ")
        return {"refused": words.partition(" (")[0]}
    token = found.token.reveal() if found.token else ""
    return {"url": found.url, "token": token, "board": found.board, "role": found.role or ""}


def expected(environ: Mapping[str, str], theirs: dict[str, Any]) -> dict[str, Any]:
    """What the bridge says, with the intended differences."""
    if theirs == {"refused": NO_MATCH} and (token := given_token(environ)):
        # D19: a caller with a token of its own needs no door, so that the doors of others are no obstacle.
        return without_doors(environ, token)
    if theirs.get("token") == "":
        return {"refused": "ONBOARD_CENTRAL_TOKEN is not set"}  # the bridge says so when a tool is called
    return theirs


def given_token(environ: Mapping[str, str]) -> str:
    """The token, or the refusal, of the token variables alone."""
    direct, path = environ.get("ONBOARD_CENTRAL_TOKEN", ""), environ.get("ONBOARD_CENTRAL_TOKEN_FILE", "")
    if not path:
        return direct
    if path.endswith("missing"):
        return "!ONBOARD_CENTRAL_TOKEN_FILE is not readable"
    if path.endswith("empty"):
        return "!ONBOARD_CENTRAL_TOKEN_FILE is empty"
    if direct == OTHER and "PURSERS_ALLOW_ENV_TOKEN" not in environ:
        return "!split identity: ONBOARD_CENTRAL_TOKEN and ONBOARD_CENTRAL_TOKEN_FILE differ"
    return direct or TOKEN


def without_doors(environ: Mapping[str, str], token: str) -> dict[str, Any]:
    if token.startswith("!"):
        return {"refused": token[1:]}
    return {
        "url": environ["ONBOARD_CENTRAL_URL"] or "http://127.0.0.1:8766/mcp",
        "token": token,
        "board": environ["ONBOARD_BOARD_ID"] or "pursers",
        "role": environ["PURSERS_ROLE"].lower(),
    }


def test_every_combination_is_resolved_as_by_the_bridge(cases: list[Case], oracle: list[dict[str, Any]]) -> None:
    assert len(cases) == len(oracle) == 7 * 2 * 8 * 3 * 4
    differing = [
        (stored, environ, answer(ours(environ, STORED[stored])), expected(environ, theirs))
        for (stored, environ), theirs in zip(cases, oracle, strict=True)
        if answer(ours(environ, STORED[stored])) != expected(environ, theirs)
    ]
    assert not differing, differing[:3]
    refusals = {theirs.get("refused") for theirs in oracle}
    assert refusals >= {
        "multiple stored boards; set ONBOARD_BOARD_ID",
        "multiple stored roles; set PURSERS_ROLE",
        NO_MATCH,
    }


def test_the_doors_are_looked_at_exactly_when_the_bridge_does(cases: list[Case]) -> None:
    """It does when any of URL, token, board and role is missing."""
    for _, environ in cases:
        looks: list[int] = []

        def load(looks: list[int] = looks) -> Sequence[Door]:
            looks.append(1)
            return ()

        resolve(environ, lambda path: Path(path).read_text(), load)
        has_token = "ONBOARD_CENTRAL_TOKEN" in environ or "ONBOARD_CENTRAL_TOKEN_FILE" in environ
        complete = has_token and all(
            environ[name] for name in ("ONBOARD_CENTRAL_URL", "ONBOARD_BOARD_ID", "PURSERS_ROLE")
        )
        assert len(looks) == (0 if complete else 1), environ


def unreadable() -> Sequence[Door]:
    raise DoorsError("doors.json is unreadable or invalid")


def test_doors_that_cannot_be_read_are_a_problem_also_beside_a_token() -> None:
    for environ in ({}, {"ONBOARD_CENTRAL_TOKEN": TOKEN}):
        found = resolve(environ, lambda path: "", unreadable)
        assert found.problems == ("doors.json is unreadable or invalid",)


def test_a_wrong_role_is_the_only_problem_of_a_door() -> None:
    found = ours({"PURSERS_ROLE": "boss"}, STORED["alpha"])
    assert [problem.partition(" must")[0] for problem in found.problems] == ["PURSERS_ROLE"]


def test_the_problem_says_what_is_stored_and_how_to_choose() -> None:
    (problem,) = ours({}, STORED["two boards and roles"]).problems
    assert problem == (
        "multiple stored boards; set ONBOARD_BOARD_ID. Stored are the doors alpha (worker), beta (reviewer)."
    )
    (problem,) = ours({"ONBOARD_BOARD_ID": "gamma"}, STORED["alpha"]).problems
    assert problem.endswith("or add one with: pursersctl join")


# --- where each value came from ---------------------------------------------------------------------------------------

KID = "door-alpha-worker-v1"


def test_origins_of_a_door() -> None:
    found = ours({}, STORED["alpha"])
    assert found.is_door_mode
    assert {name: found.origin(name) for name in ("url", "token", "board", "role")} == dict.fromkeys(
        ("url", "token", "board", "role"), Origin("door", KID)
    )
    assert (found.agent_name, found.origin("agent_name").kind) == (None, "default")


def test_each_value_on_its_own() -> None:
    found = ours({"ONBOARD_CENTRAL_TOKEN": TOKEN, "PURSERS_ROLE": "worker"}, STORED["alpha"])
    assert not found.is_door_mode
    assert found.origin("token") == Origin("variable", "ONBOARD_CENTRAL_TOKEN")
    assert found.origin("role") == Origin("variable", "PURSERS_ROLE")
    assert found.origin("url") == found.origin("board") == Origin("door", KID)
    assert found.agent_name == "pursers-wait-bridge"


def test_a_door_for_another_board_gives_nothing() -> None:
    found = ours({"ONBOARD_CENTRAL_TOKEN": TOKEN, "ONBOARD_BOARD_ID": "gamma"}, STORED["alpha"])
    assert (found.door, found.role, found.problems) == (None, None, ())
    assert found.origin("url").kind == found.origin("role").kind == "default"


# --- names of seats through a door ------------------------------------------------------------------------------------


def test_a_name_that_is_given_stays_and_an_instance_alone_does_not_count() -> None:
    given = ours({"ONBOARD_AGENT_NAME": "ann", "ONBOARD_AGENT_INSTANCE": "2"}, STORED["alpha"])
    assert (given.agent_name, given.origin("agent_name").name) == (
        "ann-2",
        "ONBOARD_AGENT_NAME, ONBOARD_AGENT_INSTANCE",
    )
    alone = ours({"ONBOARD_AGENT_INSTANCE": "2"}, STORED["alpha"])
    assert alone.agent_name is None
    assert alone.notes[0].startswith("ONBOARD_AGENT_INSTANCE counts only with ONBOARD_AGENT_NAME")
    without_door = ours({"ONBOARD_AGENT_INSTANCE": "2", "ONBOARD_CENTRAL_TOKEN": TOKEN}, [])
    assert without_door.agent_name == "pursers-wait-bridge-2"


@pytest.mark.parametrize("name", ["-x", "_x", ".x"])
def test_a_name_that_the_bridge_does_not_reserve_is_a_problem(name: str) -> None:
    (problem,) = ours({"ONBOARD_AGENT_NAME": name}, STORED["alpha"]).problems
    assert problem.startswith("seat name must be a safe 1-80 character identifier. ")
    assert ours({"ONBOARD_AGENT_NAME": name, "ONBOARD_CENTRAL_TOKEN": TOKEN}, []).problems == ()


# --- bad doors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (door("alpha", url="ftp://x"), "door URL must be an http or https URL"),
        (door("alpha", url="http://me:pw@h/mcp"), "door URL must not include user information"),
        (door("a/b"), "the board of a door must contain 1-80 letters"),
    ],
)
def test_a_door_that_cannot_be_used(stored: Door, words: str) -> None:
    (problem,) = ours({}, [stored]).problems
    assert problem.startswith(words)
    assert "pursersctl join" in problem
    assert "pw" not in problem
