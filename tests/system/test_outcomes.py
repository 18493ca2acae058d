"""Each call of a real host ends in one outcome: when Central's answer is lost, when Central is away, when the daemon dies."""

import json
import os
import signal

import pytest

from rig.central import Central
from rig.daemon import Home
from rig.proxy import Proxy
from rig.shim import Pending, ShimProcess, ToolError
from rig.wait import until
from system.scene import PATIENCE, Converse, Json, rows

READ = "board_state_get"


@pytest.fixture
def registry(central: Central, board: str) -> str:
    """A board with a project registry; its name."""
    value = {"schema_version": 1, "projects": {"p": {"board_id": board, "work_dir": "/p", "status": "active"}}}
    central.call(
        central.admin,
        "board_state_update",
        board_id=board,
        agent_name="boss",
        key="project_registry",
        value=json.dumps(value),
    )
    return board


def begin(shim: ShimProcess, proxy: Proxy) -> Pending[Json]:
    """A read that Central has and does not answer."""
    proxy.hold(READ)
    call = shim.start_tool("project_registry_get")
    until(lambda: proxy.holding(READ), PATIENCE, "the call is on its way")
    return call


def assert_answered_once(shim: ShimProcess, call: Pending[Json], board: str) -> None:
    assert call.result(PATIENCE)["projects"]["p"]["board_id"] == board
    assert shim.request("ping") == {}
    assert len(shim.answers(call.id)) == 1


def test_a_read_whose_answer_is_lost_is_asked_again(converse: Converse, proxy: Proxy, registry: str) -> None:
    shim = converse("ann", url=proxy.url)
    proxy.cut_after(READ)
    assert_answered_once(shim, shim.start_tool("project_registry_get"), registry)
    assert proxy.count(READ) == 2


def test_a_read_outlives_a_central_that_is_away_for_a_moment(converse: Converse, proxy: Proxy, registry: str) -> None:
    shim = converse("ann", url=proxy.url)
    call = begin(shim, proxy)
    proxy.refuse()
    proxy.reset_all()
    until(lambda: not proxy.holding(READ), PATIENCE, "the connection is gone")
    proxy.release(READ)
    proxy.refuse(False)
    assert_answered_once(shim, call, registry)


def test_a_read_of_a_central_that_stays_away_fails_once_and_says_so(
    converse: Converse, proxy: Proxy, registry: str
) -> None:
    shim = converse("ann", url=proxy.url)
    call = begin(shim, proxy)
    proxy.refuse()
    proxy.reset_all()
    with pytest.raises(ToolError, match="Central is unreachable at http"):
        call.result(PATIENCE)
    assert len(shim.answers(call.id)) == 1


def test_a_read_of_a_daemon_that_dies_is_answered_by_the_next_one(
    converse: Converse, home: Home, proxy: Proxy, registry: str
) -> None:
    shim = converse("ann", url=proxy.url)
    call = begin(shim, proxy)
    os.kill(home.daemon_pid(), signal.SIGKILL)
    proxy.release(READ)
    assert_answered_once(shim, call, registry)
    (row,) = rows(home)
    assert row["link_epoch"] == 2
