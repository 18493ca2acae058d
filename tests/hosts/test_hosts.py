"""Real hosts with a scripted model: `make test-hosts`. They are fetched from npm, and everything lies in scratch folders.

HOSTS_FOLDER keeps what was installed for the next run. Without npm, or without its registry, everything is skipped.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts import installed
from hosts.known import HOSTS, Host
from hosts.stage import PATIENCE, Stage
from rig.daemon import Home
from rig.wait import until


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the hosts' programs."""
    folder = os.environ.get("HOSTS_FOLDER")
    try:
        return installed.install(Path(folder) if folder else tmp_path_factory.mktemp("hosts"), HOSTS)
    except installed.OutOfReach as reason:
        pytest.skip(f"no real hosts: {reason}")


@pytest.fixture(scope="module", params=HOSTS, ids=repr)
def stage(request: pytest.FixtureRequest, programs: Path) -> Iterator[Stage]:
    """A home with a board for each host."""
    host: Host = request.param
    with Home() as home:
        yield Stage(host, programs, home)


def test_its_list_of_servers_is_content(stage: Stage) -> None:
    stage.set_up("http://127.0.0.1:9")
    try:
        listed = stage.listed()
    finally:
        stage.take_down()
    assert stage.host.is_content(listed), listed
    until(lambda: not stage.shims(), PATIENCE, "no shim remains")


@pytest.mark.parametrize("circumstances", ["a daemon runs", "no daemon runs yet", "every core is busy"])
def test_a_run_has_our_tools_at_once_and_gets_its_ticket_and_notices_no_crash(stage: Stage, circumstances: str) -> None:
    if circumstances == "no daemon runs yet":
        stage.end_daemon(signal.SIGTERM)
    play = stage.play(busy=circumstances == "every core is busy")
    assert stage.host.tool("a2a_wait") in play.turns[0].tools
    assert (len(play.turns), play.status) == (3, 0), play.printed[-3000:]
    assert play.killed, "the daemon was killed between the two calls"
    waited, again = play.results
    assert play.ticket in waited
    assert '"timed_out"' in again
    assert "rror" not in again
    until(lambda: not stage.shims(), PATIENCE, "no shim remains")
