"""The cue of a paused lease, from the real bridge and from us: the same fields, told at the same place of a result."""

from collections.abc import Callable

import pytest

from rig.central import Central
from rig.daemon import Home
from rig.shim import BRIDGE, SHIM, Json, ShimProcess
from rig.wait import until
from system.model import Model, set_ttl
from system.test_leases import cues, leases

LIMIT = "2"
TTL = 10


def _bridge_paused(home: Home, process: ShimProcess) -> bool:
    return "keepalive paused: model idle" in process.stderr


def _ours_paused(home: Home, process: ShimProcess) -> bool:
    return set(leases(home, process).values()) == {"paused"}


def _pause(central: Central, home: Home, command: str, is_paused: Callable[[Home, ShimProcess], bool]) -> Json:
    """The result of the wait that tells of a pause, with names in place of ids."""
    board, name = f"paused-{central.board_count()}", "idler"
    central.create_board(board)
    set_ttl(central, board, TTL)
    token = central.worker("ann", board)
    extra = {"PURSERS_KEEPALIVE_IDLE_LIMIT_S": LIMIT}
    with ShimProcess([command], home.environment(central.url, token, board, name, extra=extra)) as process:
        process.initialize()
        process.call_tool("a2a_wait", {"timeout_s": 1})
        work = central.create_ticket(board, "left alone")
        Model(central, board, token, name).claim(work)
        head = process.call_tool("a2a_wait", {"timeout_s": 1})["new_seq"]
        until(lambda: is_paused(home, process), 3 * TTL, "the lease is paused")
        result = process.call_tool("a2a_wait", {"timeout_s": 1, "since_seq": head})
        names = {board: "BOARD", work: "TICKET", head: "HEAD"}
        told = [{key: names.get(value, value) for key, value in cue.items()} for cue in cues(result)]
        return {**result, "events": told, "new_seq": names.get(result["new_seq"], result["new_seq"])}


@pytest.fixture(scope="module")
def bridges(central: Central) -> Json:
    with Home() as home:
        return _pause(central, home, BRIDGE, _bridge_paused)


def test_the_cue_has_the_same_fields_in_the_same_order(central: Central, home: Home, bridges: Json) -> None:
    ours = _pause(central, home, SHIM, _ours_paused)
    assert [list(cue.items()) for cue in ours["events"]] == [list(cue.items()) for cue in bridges["events"]]
    assert ours == bridges
