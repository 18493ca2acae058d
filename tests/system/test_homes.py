"""Two users' worth of PURSERSD_HOME do not see each other."""

from rig.central import Central
from rig.daemon import Home
from rig.wait import until
from system.scene import PATIENCE, Caller, ask, until_blocking, until_listed


def test_two_homes_do_not_see_each_other(central: Central, board: str) -> None:
    token = central.worker("ann", board)
    with Home() as one, Home() as other:
        callers = {}
        for home, agent in ((one, "of-one"), (other, "of-other")):
            shim = home.shim(home.environment(central.url, token, board, agent))
            shim.initialize()
            callers[agent] = Caller(shim)
            callers[agent].arm()
        for home, agent in ((one, "of-one"), (other, "of-other")):
            until_blocking(home, 1)
            assert [row["seat"] for row in home.ps()] == [agent]
            status = ask(home, "status")
            assert (status["daemon"]["home"], status["conversations"]) == (str(home.folder), 1)
        assert one.daemon_pid() != other.daemon_pid()
        ticket = central.create_ticket(board, "for both homes")
        for caller in callers.values():
            assert [event["ticket_id"] for event in caller.take()["events"]] == [ticket]
        stopped = one.ctl("stop")
        assert stopped.returncode == 0, stopped.stderr
        assert one.ctl("ps").returncode == 3
        assert [row["seat"] for row in until_listed(other, 1)] == ["of-other"]
        until(lambda: not one.daemons(), PATIENCE, "the stopped daemon is gone")
        assert len(other.daemons()) == 1
