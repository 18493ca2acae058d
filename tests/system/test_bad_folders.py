"""A socket folder that is not safe, a place that cannot work, something in the socket's place: said, not used.

The bystander's daemon runs all the time; only the way to it is spoiled, and repaired at the end of each test.
"""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pursers_shim.paths import SOCKET_LIMIT
from rig.daemon import DAEMON, Home
from rig.shim import ShimProcess, ToolError
from rig.speaker import LEGACY
from rig.wait import until
from system.scene import OPENING, PATIENCE, Bystander, rows

STRANGER = 12345  # a user id that is not ours

Repair = Callable[[], None]


def put_symlink(folder: Path) -> Repair:
    aside = folder.with_name("real")
    folder.rename(aside)
    folder.symlink_to(aside)

    def repair() -> None:
        folder.unlink()
        aside.rename(folder)

    return repair


def give_away(folder: Path) -> Repair:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(folder, STRANGER, -1)
    return lambda: os.chown(folder, os.getuid(), -1)


def open_to_group(folder: Path) -> Repair:
    folder.chmod(0o770)
    return lambda: folder.chmod(0o700)


def put_file(folder: Path) -> Repair:
    folder.rename(folder.with_name("real"))
    folder.write_text("somebody's")

    def repair() -> None:
        folder.unlink()
        folder.with_name("real").rename(folder)

    return repair


UNSAFE = {
    "a symlink": (put_symlink, "is a symbolic link. Remove it"),
    "not ours": (give_away, f"belongs to user {STRANGER}, not to you"),
    "open to the group": (open_to_group, "is open to other users (mode 0770). Run: chmod 700"),
    "a file": (put_file, "is not a folder. Move it away"),
}


def run_daemon(home: Home, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a daemon that must end at once."""
    environment = {**home.environment(role=None), **variables}
    return subprocess.run([DAEMON, "--foreground"], env=environment, capture_output=True, text=True, timeout=PATIENCE)


class Opening:
    """A host that opens a conversation and calls a tool at once."""

    def __init__(self, shim: ShimProcess) -> None:
        self._initialized = shim.start("initialize", OPENING)
        shim.notify("notifications/initialized")
        self._listed = shim.start("tools/list")
        self._called = shim.start_tool("project_registry_get")

    def refusal(self) -> str:
        """What the call is told; the host has the tools all the same."""
        assert self._initialized.result()["protocolVersion"] == LEGACY
        assert self._listed.result()["tools"]
        with pytest.raises(ToolError) as refused:
            self._called.result()
        assert refused.value.structured["error"]["code"] == "daemon_unavailable"
        return refused.value.text


def assert_works(shim: ShimProcess) -> None:
    """The daemon takes the call: what it complains of is the missing token."""
    with pytest.raises(ToolError) as refused:
        shim.call_tool("project_registry_get")
    assert "ONBOARD_CENTRAL_TOKEN is not set" in refused.value.text


@pytest.fixture
def spoiled(request: pytest.FixtureRequest, bystander: Bystander) -> Iterator[Repair]:
    """The bystander's socket folder in a bad state. The value repairs it early."""
    repairs = [request.param(Path(bystander.home.place.folder))]

    def repair() -> None:
        while repairs:
            repairs.pop()()

    yield repair
    repair()


@pytest.mark.parametrize(("spoiled", "text"), UNSAFE.values(), ids=UNSAFE.keys(), indirect=["spoiled"])
def test_a_folder_that_is_not_safe_is_refused_by_shim_daemon_and_control_program(
    bystander: Bystander, spoiled: Repair, text: str
) -> None:
    home = bystander.home
    shim = home.shim(home.environment(agent="unsafe"))
    opening = Opening(shim)
    daemon = run_daemon(home)
    assert (daemon.returncode, text in daemon.stderr) == (1, True), daemon.stderr
    control = home.ctl("ps")
    assert (control.returncode, text in control.stderr) == (5, True), control.stderr
    assert text in opening.refusal()
    spoiled()
    assert_works(shim)  # as the refusal promised: call again, no restart is needed
    shim.close()


@pytest.mark.parametrize("kind", ["a file", "a folder"])
def test_something_else_in_the_sockets_place_is_left_alone_and_named(home: Home, kind: str) -> None:
    folder, place = Path(home.place.folder), Path(home.place.socket)
    folder.mkdir(mode=0o700)
    if kind == "a file":
        place.write_text("somebody's")
    else:
        place.mkdir()
    shim = home.shim()
    opening = Opening(shim)
    daemon = run_daemon(home)
    assert daemon.returncode == 1
    assert f"{place} is not a socket" in daemon.stderr
    assert "Move it away" in daemon.stderr
    assert f"{place} is {kind}, not a socket. Move it away" in opening.refusal()
    assert place.exists()
    place.rename(folder / "moved away")
    assert_works(shim)


def test_a_stale_socket_is_replaced(home: Home) -> None:
    folder, place = Path(home.place.folder), home.place.socket
    folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(place)
    asked = home.ctl("ps")
    assert (asked.returncode, home.daemons()) == (3, []), asked.stderr
    shim = home.shim()
    shim.initialize()
    assert_works(shim)
    until(lambda: len(rows(home)) == 1, PATIENCE, "the daemon serves it")


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (f"/tmp/{'x' * SOCKET_LIMIT}", f"the limit is {SOCKET_LIMIT}. Set PURSERSD_HOME to a shorter path."),
        ("relative/path", "PURSERSD_HOME must be an absolute path"),
    ],
    ids=["too long", "relative"],
)
def test_a_home_that_cannot_work_is_refused_and_not_made(home: Home, place: str, text: str) -> None:
    environment = home.environment(extra={"PURSERSD_HOME": place})
    opening = Opening(home.shim(environment))
    daemon = run_daemon(home, PURSERSD_HOME=place)
    assert (daemon.returncode, text in daemon.stderr) == (1, True), daemon.stderr
    assert text in opening.refusal()
    assert not Path(place).exists()
