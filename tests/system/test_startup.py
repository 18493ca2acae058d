"""Many hosts start at once and there is no daemon yet."""

from pathlib import Path

from rig.daemon import Home
from rig.wait import until
from system.scene import OPENING, PATIENCE, until_listed

CROWD = 50


def test_fifty_shims_started_at_once_without_a_daemon_give_one_daemon_and_fifty_conversations(home: Home) -> None:
    shims = [home.shim(home.environment(agent=f"w{number}")) for number in range(CROWD)]
    asked = [shim.start("initialize", OPENING) for shim in shims]
    for shim in shims:
        shim.notify("notifications/initialized")
    listed = [shim.start("tools/list") for shim in shims]
    for answer in asked:
        assert answer.result(PATIENCE)["serverInfo"]["name"] == "Pursers Wait Bridge"
    for tools in listed:
        assert "a2a_wait" in {tool["name"] for tool in tools.result(PATIENCE)["tools"]}
    rows = until_listed(home, CROWD)
    assert {row["shim_pid"] for row in rows} == {shim.pid for shim in shims}
    assert len({row["conversation"] for row in rows}) == CROWD
    assert until(lambda: [process.pid for process in home.daemons()]) == [home.daemon_pid()]
    assert Path(home.folder, "state", "epoch").read_text().strip() == "1", "more than one daemon held the lock"
    for shim, opening in zip(shims, asked, strict=True):
        assert len(shim.answers(opening.id)) == 1
        assert shim.rubbish == []
