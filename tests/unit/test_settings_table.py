"""settings, variable by variable: what a good value does and where it is said to come from, what a bad one does, and that an
empty one is as good as none (bridge.md §6.1, D3). docs/configuration.md must name the same variables."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest

from pursersd.secret import Secret
from pursersd.settings import Settings, resolve

TOKEN = "token-of-the-table"
INSTANCE = "CI-" + "0a" * 32
DIGEST = "9b6c7ed4d8ab2d6a4c86a2b2b9dcbd5f0fb2ee7b9e2f2f4f2e8f2a3b4c5d6e7f"
FILES = {"/t": f"{TOKEN}\n", "/other": "another"}


@dataclass(frozen=True)
class Row:
    """One variable. `good` maps values to what they make of fields; `host.x` is a field of the host's profile."""

    name: str
    good: dict[str, dict[str, Any]]
    refused: Sequence[str] = ()
    """Values that are a problem: no work with Central until they are repaired."""
    ignored: Sequence[str] = ()
    """Values that are noted, and the default used."""
    setting: str | None = None
    """The setting whose origin it is; None for a variable that only judges another one."""
    beside: dict[str, str] = field(default_factory=dict)
    """What else must be set for it to matter."""
    empty_counts: bool = False
    """An empty value is not the same as none."""


SECONDS = ("0", "-1", "soon", "nan", "inf", "1e999")
NAMES_REFUSED = ("a b", "a/b", "ä", "x" * 81)

TABLE = (
    Row("ONBOARD_CENTRAL_URL", {" https://h:1/mcp ": {"url": "https://h:1/mcp"}},
        refused=("h:1", "ftp://h/mcp", "http://", "http://u:p@h/mcp", "http://h/a b"), setting="url"),
    Row("ONBOARD_CENTRAL_TOKEN", {f" {TOKEN}\n": {"token": Secret(TOKEN)}}, refused=("a b", "Bearer x", "tök"),
        setting="token", beside={"ONBOARD_CENTRAL_TOKEN": ""}),
    Row("ONBOARD_CENTRAL_TOKEN_FILE", {"/t": {"token": Secret(TOKEN)}}, refused=("/missing", "/other"), setting="token"),
    Row("PURSERS_ALLOW_ENV_TOKEN", {"1": {"token": Secret(TOKEN)}}, refused=("0", "true"),
        beside={"ONBOARD_CENTRAL_TOKEN_FILE": "/other"}, empty_counts=True),
    Row("ONBOARD_BOARD_ID", {" alpha ": {"board": "alpha"}}, refused=NAMES_REFUSED, setting="board"),
    Row("PURSERS_ROLE", {"worker": {"role": "worker"}, " Coordinator ": {"role": "coordinator"}}, refused=("boss", "named"),
        setting="role"),
    Row("ONBOARD_AGENT_NAME", {"a.b_c-1": {"agent_name": "a.b_c-1"}}, refused=("", " a", *NAMES_REFUSED),
        setting="agent_name", empty_counts=True),
    Row("ONBOARD_AGENT_INSTANCE", {"2": {"agent_name": "pursers-wait-bridge-2"}}, refused=(" ", "a b", "x" * 33),
        setting="agent_name"),
    Row("ONBOARD_CENTRAL_INSTANCE_ID", {f" {INSTANCE} ": {"instance_id": INSTANCE}},
        refused=("CI-1", INSTANCE.upper(), INSTANCE[3:]), setting="instance_id"),
    Row("PURSERS_WAIT_MODE", {"Poll": {"wait_mode": "poll"}, "push": {"wait_mode": "push"}}, ignored=("pull", "1"),
        setting="wait_mode"),
    Row("PURSERS_HOST", {"Zed": {"host.name": "zed", "host.platform": "zed", "host.block_limit_s": 560},
                         "goose": {"host.block_limit_s": 270}}, ignored=("mine",), setting="host"),
    Row("PURSERS_HOST_TIMEOUT_S", {"90": {"host.timeout_s": 90, "host.block_limit_s": 60}, "2": {"host.block_limit_s": 1}},
        ignored=("1", "0", "9.5", "long"), setting="timeout_s"),
    Row("PURSERS_KEEPALIVE_IDLE_LIMIT_S", {"60.5": {"idle_limit_s": 60.5}}, ignored=SECONDS, setting="idle_limit_s"),
    Row("PURSERS_BACKLOG_RESURFACE_INTERVAL_S", {"1": {"resurface_s": 1.0}}, ignored=SECONDS, setting="resurface_s"),
    Row("PURSERS_BACKLOG_SCAN_INTERVAL_S", {"0.5": {"scan_interval_s": 0.5}}, ignored=SECONDS, setting="scan_interval_s"),
    Row("PURSERS_TIER_MAX", {" 3 ": {"capabilities.tier_max": 3}}, refused=("0", "4", "two", "1.0"), setting="capabilities"),
    Row("PURSERS_SKILLS", {"b, a,,b": {"capabilities.skills": ["a", "b"]}}, setting="capabilities"),
    Row("PURSERS_CAN_WORK", {"off": {"capabilities.can_work": False}, "YES": {"capabilities.can_work": True}},
        refused=("maybe", "2"), setting="capabilities"),
    Row("PURSERS_CAN_REVIEW", {"1": {"capabilities.can_review": True}, "no": {"capabilities.can_review": False}},
        refused=("maybe", "-1"), setting="capabilities"),
    Row("PURSERS_MODEL", {" m ": {"capabilities.model": "m"}}, setting="capabilities"),
    Row("PURSERS_PROVIDER", {"p": {"capabilities.provider": "p"}}, setting="capabilities"),
    Row("PURSERS_LEGACY_TOOLS", {"1": {"capabilities.legacy_tools": True}, "0": {"capabilities": None}}),
    Row("PURSERS_BOARDS", {" home ": {"boards_filter": "home"}, "a,b": {"boards_filter": "a,b"}}, setting="boards_filter"),
    Row("PURSERS_REQUIRE_TOKEN_MATCH", {"0": {"token": Secret(TOKEN)}}, refused=("1",)),
    Row("PURSERS_BOARD_CONNECTOR_TOKEN", {TOKEN: {"token": Secret(TOKEN)}}, refused=("another", f" {TOKEN}"),
        beside={"PURSERS_REQUIRE_TOKEN_MATCH": "1"}, empty_counts=True),
    Row("PURSERS_BOARD_CONNECTOR_TOKEN_SHA256", {}, refused=("no digest", DIGEST),
        beside={"PURSERS_REQUIRE_TOKEN_MATCH": "1"}, empty_counts=True),
)  # fmt: skip

ELSEWHERE = {
    "PURSERS_BRIDGE_STATE_DIR",  # where the doors are: state/doors.py
    "PURSERS_BRIDGE_STATS",
    "PURSERS_BRIDGE_STATE",
    "PURSERS_REQUEST_STATE_KEY_FILE",
    "PURSERS_CENTRAL_CONNECTION_CAP",  # means nothing here
    "HOME",
}
"""Variables of bridge.md §6.1 that make no setting of a conversation."""


def read_file(path: str) -> str:
    try:
        return FILES[path]
    except KeyError:
        raise FileNotFoundError(2, "No such file or directory", path) from None


def resolved(row: Row, value: str | None) -> Settings:
    environ = {"ONBOARD_CENTRAL_TOKEN": TOKEN, **row.beside}
    if row.name == "ONBOARD_CENTRAL_TOKEN_FILE" and value != "/other":
        del environ["ONBOARD_CENTRAL_TOKEN"]
    return resolve(environ if value is None else {**environ, row.name: value}, read_file)


def look(found: Settings, path: str) -> Any:
    value: Any = found
    for step in path.split("."):
        value = value[step] if isinstance(value, dict) else getattr(value, step)
    return value


def cases(kind: str) -> list[Any]:
    return [pytest.param(row, value, id=f"{row.name}={value!r}"[:60]) for row in TABLE for value in getattr(row, kind)]


@pytest.mark.parametrize(("row", "value"), cases("good"))
def test_a_good_value_counts_and_is_named_as_the_origin(row: Row, value: str) -> None:
    found = resolved(row, value)
    assert (found.problems, found.notes) == ((), ())
    assert {path: look(found, path) for path in row.good[value]} == row.good[value]
    if row.setting is not None:
        kind = "file" if row.name.endswith("_FILE") else "variable"
        assert (found.origin(row.setting).kind, found.origin(row.setting).name) == (kind, row.name)


@pytest.mark.parametrize(("row", "value"), cases("refused"))
def test_a_bad_value_is_one_problem_that_says_what_to_do_and_quotes_nothing(row: Row, value: str) -> None:
    (problem,) = resolved(row, value).problems
    rule, _, advice = problem.partition(". ")
    assert rule
    assert advice.endswith(".")
    if len(value.strip()) > 7 and value.strip() != "no digest":
        assert value.strip() not in problem


@pytest.mark.parametrize(("row", "value"), cases("ignored"))
def test_a_value_that_is_ignored_is_noted_and_the_default_used(row: Row, value: str) -> None:
    found = resolved(row, value)
    assert found.problems == ()
    (note,) = found.notes
    assert note.startswith(row.name)
    plain = resolved(row, None)
    if row.name != "PURSERS_HOST":  # a name that nobody knows is shown, with the shortest limits
        same = [f.name for f in fields(Settings) if f.name not in ("notes", "origins")]
        assert {name: getattr(found, name) for name in same} == {name: getattr(plain, name) for name in same}
        assert found.origin(row.setting or "").kind == "default"


@pytest.mark.parametrize("row", [row for row in TABLE if not row.empty_counts], ids=lambda row: row.name)
def test_an_empty_value_is_none(row: Row) -> None:
    assert resolved(row, "") == resolved(row, None)


def test_the_table_and_the_page_name_every_variable() -> None:
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([A-Z_0-9]+)`", page, re.MULTILINE))
    assert named == {row.name for row in TABLE} | ELSEWHERE | {n for n in named if n.startswith("PURSERSD_")}
