"""What an operator reads while Central is away, in `status`, in `ps` and in the log; the model that waits reads nothing."""

from rig.central import Central
from rig.daemon import Home
from rig.proxy import Proxy
from rig.wait import until
from system.scene import PATIENCE, Caller, Converse, ask, rows, until_blocking


def codes(home: Home) -> list[str]:
    return [warning["code"] for warning in ask(home, "status")["warnings"]]


def test_a_central_that_is_away_is_shown_everywhere_and_the_wait_goes_on(
    central: Central, proxy: Proxy, home: Home, board: str, converse: Converse
) -> None:
    caller = Caller(converse("patient", url=proxy.url))
    wait = caller.arm()
    until_blocking(home, 1)
    log = home.folder / "log" / "pursersd.log"
    proxy.refuse()
    proxy.reset_all()
    until(lambda: codes(home) == ["central_unreachable"], PATIENCE, "status says so")
    (shown,) = ask(home, "status")["centrals"]
    assert (shown["state"], shown["streams"]) == ("unreachable", 0)
    assert shown["trouble_s"] is not None
    listed = home.ctl("ps")
    assert "central_unreachable: Central" in listed.stdout
    assert "Waits go on by themselves" in " ".join(listed.stdout.split())
    until(lambda: "warning central_unreachable: Central" in log.read_text(), PATIENCE, "the log says so")
    assert [row["state"] for row in rows(home)] == ["waiting"]
    ticket = central.create_ticket(board, "meanwhile")
    assert not wait.done
    proxy.refuse(False)
    assert [event["ticket_id"] for event in caller.take()["events"]] == [ticket]
    assert caller.wait is wait
    until(lambda: codes(home) == [], PATIENCE, "all is well")
    until(lambda: "warning central_unreachable is over" in log.read_text(), PATIENCE, "the log says so, too")
    caller.assert_once()


def test_a_conversation_that_cannot_work_is_named(central: Central, home: Home, board: str) -> None:
    (home.folder / "state").mkdir(mode=0o700, exist_ok=True)
    doors = home.folder / "state" / "doors.json"
    doors.write_text("{ broken")
    shim = home.shim(home.environment(central.url, None, board, "lost"))
    shim.initialize()
    until(lambda: codes(home) == ["settings_wrong"], PATIENCE, "status says so")
    (warning,) = ask(home, "status")["warnings"]
    assert str(doors) in warning["text"]
    assert rows(home)[0]["problem"] in warning["text"]
    assert doors.read_text() == "{ broken"
