"""The rig itself, against the real Central: it counts what happened, and its faults are what they claim."""

import http.client
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from rig import processes
from rig.central import Central, ToolFailed
from rig.daemon import Home
from rig.plain import PlainClient
from rig.proxy import Proxy
from rig.relay import fingerprint
from rig.shim import BRIDGE, ShimProcess
from rig.wait import until

Connect = Callable[[], PlainClient]


@pytest.fixture
def connect(central: Central, proxy: Proxy, board: str) -> Iterator[Connect]:
    """Opens clients with the token of a member of `board`."""
    clients: list[PlainClient] = []
    token = central.worker("ann", board)

    def opened() -> PlainClient:
        clients.append(PlainClient(proxy.port, token, timeout=60))
        return clients[-1]

    yield opened
    for client in clients:
        client.close()


def test_a_worker_token_works_on_its_board_only(central: Central, board: str) -> None:
    token = central.worker("ann", board)
    joined = central.call(token, "board_join", board_id=board, agent_name="seat", allow_takeover=True)
    assert joined["principal_id"] == central.principal_id("ann")
    with pytest.raises(ToolFailed, match="not authorized for this board"):
        central.call(token, "board_status", board_id="alpha")


def test_an_expired_token_is_refused(central: Central, board: str) -> None:
    with pytest.raises(ToolFailed, match="HTTP 401"):
        central.call(central.mint("ann", "board:read", lifetime=-60), "board_status", board_id=board)


def test_a_created_ticket_is_open_and_nobodys(central: Central, board: str) -> None:
    before = central.head(board)
    ticket_id = central.create_ticket(board, "Say hello")
    ticket = central.call(central.admin, "ticket_get", board_id=board, ticket_id=ticket_id)["ticket"]
    assert (ticket["status"], ticket.get("assigned_to")) == ("open", None)
    assert central.head(board) == before + 1


def test_central_keeps_its_data_over_a_restart(board: str) -> None:
    with Central() as other:
        other.create_board("kept")
        before = other.head("kept")
        other.kill()
        other.start()
        assert (other.board_count(), other.head("kept")) == (1, before)
        assert other.process is not None
        pid = other.process.pid
    assert pid not in [process.pid for process in processes.of_this_run()]


def test_the_proxy_counts_requests_on_a_shared_connection(proxy: Proxy, connect: Connect, board: str) -> None:
    client = connect()
    for _ in range(3):
        client.tool("board_status", board_id=board)
    client.tool("board_list")
    assert proxy.names() == {"board_status": 3, "board_list": 1}
    assert (proxy.count(), proxy.opened, proxy.live) == (4, 1, 1)
    assert proxy.seen("board_status")[0].arguments == {"board_id": board}
    client.close()
    until(lambda: proxy.live == 0, message="the connection is closed")


def test_the_proxy_tells_credentials_apart(central: Central, proxy: Proxy) -> None:
    tokens = [central.worker("ann", "alpha"), central.worker("bob", "alpha")]
    for token in tokens:
        client = PlainClient(proxy.port, token, timeout=60)
        client.tool("board_list")
        client.close()
    assert proxy.credentials() == {fingerprint(token) for token in tokens}


def test_a_stream_carries_cues_and_can_be_cut_alone(
    central: Central, proxy: Proxy, connect: Connect, board: str
) -> None:
    listening, calling = connect(), connect()
    stream = listening.listen(f"board://{board}/journal")
    central.create_ticket(board, "cue")
    assert next(stream)["params"]["uri"].startswith(f"board://{board}/")
    calling.tool("board_list")
    assert [x.uris for x in proxy.streams] == [[f"board://{board}/journal"]]
    assert proxy.cut_streams() == 1
    with pytest.raises((OSError, http.client.HTTPException)):
        list(stream)
    calling.tool("board_list")
    assert (proxy.opened, proxy.streams) == (2, [])
    until(lambda: central.streams() == 0, message="Central lost the stream, too")


def test_an_overflow_ends_a_stream_with_a_result(central: Central, proxy: Proxy, connect: Connect, board: str) -> None:
    stream = connect().listen(f"board://{board}/journal")
    assert proxy.overflow() == 1
    assert next(stream)["result"]["resultType"] == "complete"
    assert list(stream) == []  # a proper end of the body, not a broken one
    until(lambda: central.streams() == 0, message="Central lost the stream, too")


def test_a_held_tool_waits_and_others_pass(proxy: Proxy, connect: Connect, board: str) -> None:
    proxy.hold("board_status")
    held, other = connect(), connect()
    thread = threading.Thread(target=held.tool, args=("board_status",), kwargs={"board_id": board})
    thread.start()
    until(lambda: proxy.holding("board_status") == 1, message="the request is held")
    other.tool("board_list")
    assert thread.is_alive()
    proxy.release("board_status")
    thread.join(10)
    assert not thread.is_alive()


def test_a_lost_answer_is_of_a_request_that_was_carried_out(
    central: Central, proxy: Proxy, connect: Connect, board: str
) -> None:
    proxy.cut_after("board_join")
    with pytest.raises((OSError, http.client.HTTPException)):
        connect().tool("board_join", board_id=board, agent_name="lost", allow_takeover=True)
    members = central.call(central.admin, "board_members", board_id=board)["members"]
    assert any("lost" in member["agent_names"] for member in members)
    connect().tool("board_join", board_id=board, agent_name="lost", allow_takeover=True)


def test_a_black_hole_is_silent_until_it_ends(proxy: Proxy, connect: Connect) -> None:
    client = connect()
    client.tool("board_list")
    proxy.blackhole()
    thread = threading.Thread(target=client.tool, args=("board_list",))
    thread.start()
    until(lambda: proxy.count() == 2, message="the request left the client")
    thread.join(0.3)
    assert thread.is_alive()
    assert proxy.live == 1
    proxy.blackhole(False)
    thread.join(10)
    assert not thread.is_alive()


def test_refused_connections_come_back(proxy: Proxy, connect: Connect) -> None:
    kept = connect()
    kept.tool("board_list")
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        connect().tool("board_list")
    kept.tool("board_list")
    assert proxy.reset_all() == 1
    with pytest.raises((OSError, http.client.HTTPException)):
        kept.tool("board_list")
    proxy.refuse(False)
    connect().tool("board_list")


def test_a_conversation_with_the_bridge_is_ended_whatever_it_does(
    central: Central, proxy: Proxy, home: Home, board: str
) -> None:
    environment = home.environment(proxy.url, central.worker("ann", board), board, "seat")
    with ShimProcess([BRIDGE], environment, hosted=True) as bridge:
        assert bridge.initialize()["serverInfo"]["name"] == "Pursers Wait Bridge"
        entry = bridge.call_tool("a2a_wait", {"boards": [board], "timeout_s": 1})
        wait = bridge.start_tool("a2a_wait", {"boards": [board], "timeout_s": 60, "since_seq": entry["new_seq"]})
        until(lambda: proxy.streams, message="the bridge listens")
        central.create_ticket(board, "wake up")
        woken = wait.result(20)
        assert woken["events"]
        assert not bridge.rubbish
        again = bridge.start_tool("a2a_wait", {"boards": [board], "timeout_s": 60, "since_seq": woken["new_seq"]})
        pids = {process.pid for process in processes.of_home(home.folder)}
        assert bridge.pid in pids
        bridge.kill(signal.SIGKILL)  # the host only
        bridge.wait()
        assert not again.done
        assert {process.pid for process in processes.of_home(home.folder)} == pids - {bridge.process.pid}
    assert processes.of_home(home.folder) == []
