"""Two credentials and three boards in one daemon: no request carries a token that is not its conversation's."""

from pursersd.ids import agent_uri
from rig.central import WORKER_SCOPE, Central
from rig.daemon import Home
from rig.proxy import Proxy
from rig.relay import fingerprint
from rig.wait import until
from system.scene import PATIENCE, Caller, until_blocking, until_listed

ANN, BOB = "ann", "bob"


def test_no_request_carries_the_wrong_token(central: Central, home: Home, board: str) -> None:
    """Through entries, live events, acknowledgements, lost streams and a restart of the daemon.

    Both credentials belong to the first board: there the seat tells whose request it is.
    """
    boards = [board, f"{board}-of-ann", f"{board}-of-bob"]
    for name, members in zip(boards[1:], ((ANN,), (BOB,)), strict=True):
        central.create_board(name, dict.fromkeys(members, "member"))
    central.admit(board, ANN)
    central.admit(board, BOB)
    tokens = {subject: central.mint(subject, WORKER_SCOPE) for subject in (ANN, BOB)}
    homes = {"ann-1": (ANN, boards[0]), "bob-1": (BOB, boards[0]), "ann-2": (ANN, boards[1]), "bob-2": (BOB, boards[2])}

    with Proxy(central.port) as proxy:
        callers = {}
        for agent, (subject, at) in homes.items():
            shim = home.shim(home.environment(proxy.url, tokens[subject], at, agent))
            shim.initialize()
            callers[agent] = Caller(shim)
        for caller in callers.values():
            caller.arm(timeout_s=1)  # without a cursor: what it is given must be acknowledged
        for caller in callers.values():
            caller.take()
            caller.arm()
        until_blocking(home, 4)
        news(central, boards, callers)
        proxy.cut_streams()
        news(central, boards, callers)
        home.daemons()[0].kill()
        until_listed(home, 4)
        news(central, boards, callers)

        owners = {fingerprint(token): subject for subject, token in tokens.items()}
        seen = [(owners[str(x.credential)], x) for x in proxy.seen()]
        assert {owner for owner, _ in seen} == {ANN, BOB}
        uris = {uri_of(central, agent, subject, at): subject for agent, (subject, at) in homes.items()}
        for owner, request in seen:
            at, agent = request.arguments.get("board_id"), request.arguments.get("agent_name")
            assert at in (None, board, f"{board}-of-{owner}"), request
            assert agent is None or homes[agent][0] == owner, request
            for uri in request.uris:
                assert uris.get(uri, owner) == owner, request
        named = {(owner, x.arguments.get("board_id")) for owner, x in seen if x.arguments.get("agent_name")}
        assert named == {(subject, at) for subject, at in homes.values()}
        # What is no request for MCP (health, for one) has no token at all.
        assert proxy.credentials() - {None} == set(owners)


def news(central: Central, boards: list[str], callers: dict[str, Caller]) -> None:
    """A ticket on each board; everybody is told of its own."""
    until(lambda: all(not caller.wait.done for caller in callers.values() if caller.wait), PATIENCE, "all wait")
    made = {at: central.create_ticket(at, "news") for at in boards}
    wanted = {"ann-1": boards[0], "bob-1": boards[0], "ann-2": boards[1], "bob-2": boards[2]}
    for agent, caller in callers.items():
        until(lambda c=caller, at=wanted[agent]: c.has_seen({made[at]}), PATIENCE, f"{agent} was told")


def uri_of(central: Central, agent: str, subject: str, board: str) -> str:
    """The resource of a seat: only its own credential may listen to it."""
    status = central.call(central.admin, "board_status", board_id=board)
    found = next(a for a in status["agents"] if a["agent_name"] == agent)
    assert found["principal_id"] == central.principal_id(subject)
    return agent_uri(board, found["agent_id"])
