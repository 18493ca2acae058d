"""Two daemons of one user, two links of one conversation: only the newer one has an effect, and the older one is told."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from pursers_shim.launch import lock_holder
from rig import processes
from rig.central import Central
from rig.daemon import Home
from rig.link import Link
from rig.proxy import Proxy
from rig.speaker import Ended, ToolError
from rig.wait import until
from system.scene import PATIENCE, Caller, Converse, ask, until_blocking, until_listed


def test_a_thawed_daemon_that_was_replaced_has_no_effect_and_says_so(
    central: Central, home: Home, proxy: Proxy, board: str, converse: Converse
) -> None:
    old = home.start_daemon()
    caller = Caller(converse("moved", url=proxy.url))
    wait = caller.arm()
    until_blocking(home, 1)
    old.send_signal(signal.SIGSTOP)
    # While it is stopped nobody takes its place, but if the folder goes with lock and socket, the next one cannot know.
    shutil.rmtree(home.place.folder)
    newcomer = converse("newcomer")
    newcomer.start_tool("project_registry_get").message(PATIENCE)
    new = home.daemon_pid()
    assert new != old.pid
    of_old, before = proxy.opened, proxy.mark()
    ticket = central.create_ticket(board, "the cue lies in the old daemon's stream")
    old.send_signal(signal.SIGCONT)
    assert old.wait(PATIENCE) == 1
    assert f"A newer pursersd holds {home.place.lock}" in home.output()
    assert [event["ticket_id"] for event in caller.take()["events"]] == [ticket]
    assert caller.wait is wait
    caller.assert_once()
    assert [seen.name for seen in proxy.seen(None, before) if seen.connection <= of_old] == []
    assert proxy.count("board_catchup", before) > 0
    assert home.daemon_pid() == new
    assert [process.pid for process in home.daemons()] == [new]
    assert Path(home.place.socket).exists()
    until_listed(home, 2)


def test_a_daemon_whose_lock_file_is_removed_takes_it_again_when_another_one_starts(
    central: Central, home: Home, board: str, converse: Converse
) -> None:
    daemon = home.start_daemon()
    caller = Caller(converse("calm"))
    caller.arm()
    until_blocking(home, 1)
    os.unlink(home.place.lock)
    done = home.ctl("start")
    assert done.returncode == 0, done.stderr
    assert f"pid {daemon.pid}" in done.stdout
    assert lock_holder(home.place.lock) == daemon.pid
    assert "it is locked again" in home.output()
    ticket = central.create_ticket(board, "as if nothing had happened")
    assert [event["ticket_id"] for event in caller.take()["events"]] == [ticket]
    caller.assert_once()
    assert ask(home, "status")["daemon"]["epoch"] == 1
    assert [process.pid for process in home.daemons() if processes.is_alive(process)] == [daemon.pid]


def test_an_old_link_has_no_effect_after_a_newer_attach_and_is_told(
    central: Central, home: Home, proxy: Proxy, board: str
) -> None:
    home.start_daemon()
    environment = home.environment(proxy.url, central.worker("twice", board), board, "twice")
    with Link(home.place.socket, environment) as old:
        old.initialize()
        proxy.hold("board_state_get")
        running = old.start_tool("project_registry_get")
        until(lambda: proxy.holding("board_state_get"), PATIENCE, "a call is running")
        names = ("conversation", "daemon_epoch", "link_epoch")
        resume = {name: old.greeting[name] for name in names}
        with Link(home.place.socket, environment, resume=resume) as new:
            assert (new.greeting["conversation"], new.greeting["link_epoch"]) == (old.greeting["conversation"], 2)
            with pytest.raises(Ended):
                running.message(PATIENCE)  # what it had begun is not answered there
            assert [x["params"] for x in old.notifications if x["method"] == "pursers/fence"] == [{"link_epoch": 2}]
            before = proxy.mark()
            with pytest.raises((Ended, OSError)):
                old.start_tool("project_registry_get").message(PATIENCE)
            assert proxy.count(None, before) == 0
            proxy.release("board_state_get")
            new.initialize()
            with pytest.raises(ToolError, match="no project registry"):
                new.call_tool("project_registry_get")
            (row,) = until_listed(home, 1)
            assert row["link_epoch"] == 2
