"""All thirteen tools, and what can be lost while they are called: each call has one outcome, which is true, and one effect."""

import os
import signal

import pytest

from pursers_shim.dial import reserve_start
from pursersd.rules import resend
from rig.central import Central
from rig.daemon import Home
from rig.proxy import Proxy
from rig.wait import until
from system.crew import AT_CENTRAL, LAST_REQUESTS, Crew
from system.scene import PATIENCE, ask, until_listed


@pytest.fixture
def crew(central: Central, home: Home, board: str, proxy: Proxy) -> Crew:
    return Crew(central, home, board, proxy)


def drain(home: Home) -> int:
    """A service manager's SIGTERM; the pid of the daemon that leaves."""
    daemon = home.daemon_pid()
    os.kill(daemon, signal.SIGTERM)

    def leaves() -> bool:
        seen = ask(home, "status")["daemon"]  # of the next one, if this one had nothing to wait for
        return bool(seen["state"] == "draining" or seen["pid"] != daemon)

    until(leaves, PATIENCE, "it leaves")
    return daemon


def until_gone(home: Home, daemon: int) -> None:
    until(lambda: daemon not in {process.pid for process in home.daemons()}, PATIENCE, "it is gone")


def test_the_answers_of_central_are_lost(crew: Crew) -> None:
    for name in {*LAST_REQUESTS.values(), "board_catchup", "ticket_get"}:
        crew.proxy.cut_after(name)
    crew.call()
    crew.humans_answer()
    crew.happen()
    crew.assert_done_once()
    assert crew.proxy.count("ticket_question_ask") == 2


def test_the_connections_to_central_are_lost_before_it_has_anything(crew: Crew) -> None:
    crew.begin()
    crew.proxy.reset_all()
    crew.release()
    crew.happen()
    crew.assert_done_once()


def test_the_daemon_dies_before_it_has_sent_anything(crew: Crew) -> None:
    crew.proxy.hold("board_join")
    crew.call()
    until(lambda: crew.proxy.holding("board_join") >= 4, PATIENCE, "the first ones are on their way")
    os.kill(crew.home.daemon_pid(), signal.SIGKILL)
    crew.proxy.release("board_join")
    crew.humans_answer()
    crew.happen()
    crew.assert_done_once()


@pytest.mark.parametrize("carried_out", [False, True])
def test_the_daemon_dies_when_everything_is_on_its_way(crew: Crew, carried_out: bool) -> None:
    crew.begin()
    crew.crash(carried_out=carried_out)
    crew.happen()
    crew.assert_done_once()
    assert crew.proxy.count("ticket_question_ask") == 2


def test_the_daemon_dies_and_the_next_one_does_not_reach_central(crew: Crew) -> None:
    """Who may have changed something hears that nobody knows, of what, and how to look; not that it failed."""
    crew.begin()
    held = reserve_start(crew.home.place)
    assert held is not None
    crew.crash(carried_out=True)
    crew.proxy.refuse()
    crew.proxy.reset_all()
    os.close(held)
    for tool, job in crew.jobs.items():
        if resend.read_only(tool):
            continue
        result = crew.outcome(job)["result"]
        error = result["structuredContent"]["error"]
        assert (result["isError"], error["code"], error["tool"]) == (True, "outcome_unknown", tool)
        assert error["target"] == resend.target(tool, job.arguments)
        text = result["content"][0]["text"]
        assert "Central is unreachable" in text
        assert text.endswith(f"Do not just repeat it. {resend.tool(tool).check}")
    assert [crew.jobs[tool].effects() for tool in AT_CENTRAL] == [1, 1, 1, 1]  # type: ignore[misc]
    crew.proxy.refuse(False)


def test_the_daemon_is_replaced_twice(crew: Crew) -> None:
    """What is on its way ends with the first one; the waits move on, and move on again."""
    crew.begin()
    daemon = drain(crew.home)
    crew.release()
    until_gone(crew.home, daemon)
    until_listed(crew.home, len(crew.jobs))
    until_gone(crew.home, drain(crew.home))
    crew.happen()
    crew.assert_done_once()
    assert crew.proxy.count("ticket_question_ask") == 1


def test_whatever_is_cancelled_has_no_answer_and_does_not_go_on(crew: Crew) -> None:
    """Before anything is sent, when all is on its way, when the daemon leaves, when there is none; then all calls work."""
    crew.proxy.hold("board_join")
    crew.call()
    until(lambda: crew.proxy.holding("board_join") >= 4, PATIENCE, "the first ones are on their way")
    crew.cancel()
    crew.proxy.release("board_join")
    crew.assert_nothing_done()

    crew.begin()
    crew.cancel()
    crew.until_given_up()
    crew.release()
    crew.assert_nothing_done()

    crew.begin()
    daemon = drain(crew.home)
    crew.cancel()
    crew.until_given_up()
    until_gone(crew.home, daemon)
    assert "calls are still running" not in (crew.home.folder / "log" / "pursersd.log").read_text()
    crew.release()
    until_listed(crew.home, len(crew.jobs))
    crew.assert_nothing_done()

    crew.begin()
    held = reserve_start(crew.home.place)
    assert held is not None
    crew.crash(carried_out=False)
    crew.cancel()
    os.close(held)
    until_listed(crew.home, len(crew.jobs))
    crew.assert_nothing_done()

    crew.call()
    crew.humans_answer()
    crew.happen()
    for job in crew.jobs.values():
        assert "result" in crew.outcome(job)
