"""Two machines whose homes are one network folder: each daemon counts, logs and remembers for itself, and both live.

The second machine is a name, a machine id and a runtime folder that nobody else sees, which takes namespaces of our own.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pursersd import machine
from rig import processes
from rig.daemon import CTL, DAEMON, Home
from rig.wait import until
from system.scene import PATIENCE, ask

UNSHARE, NSENTER = shutil.which("unshare"), shutil.which("nsenter")

BECOME_ANOTHER = """
mount -t tmpfs -o mode=0700 none "$1/run" && echo elsewhere >/proc/sys/kernel/hostname || exit 9
if [ -e /etc/machine-id ]; then mount --bind "$1/other-id" /etc/machine-id || exit 9; fi
exec "$2" --foreground
"""


def can_be_another() -> bool:
    """Whether we may have mounts and a host name that nobody else sees."""
    if sys.platform != "linux" or UNSHARE is None or NSENTER is None or os.getuid() != 0:
        return False
    return subprocess.run([UNSHARE, "-m", "-u", "true"], capture_output=True, timeout=PATIENCE).returncode == 0


pytestmark = pytest.mark.skipif(not can_be_another(), reason="namespaces of our own are not allowed here")


class Elsewhere:
    """The other machine, which sees the same home."""

    def __init__(self, home: Home, daemon: "subprocess.Popen[bytes]") -> None:
        self._home = home
        self.daemon = daemon

    def ctl(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        inside = [str(NSENTER), "-t", str(self.daemon.pid), "-m", "-u", "--", CTL, *arguments]
        environment = self._home.environment(role=None)
        return subprocess.run(inside, env=environment, capture_output=True, text=True, timeout=PATIENCE)

    def status(self) -> Any:
        return json.loads(self.ctl("status", "--json").stdout)["daemon"]


@contextlib.contextmanager
def elsewhere(home: Home) -> Iterator[Elsewhere]:
    (home.folder / "other-id").write_text("0123456789abcdef0123456789abcdef\n")
    daemon = subprocess.Popen(
        [str(UNSHARE), "-m", "-u", "sh", "-c", BECOME_ANOTHER, "sh", str(home.folder), DAEMON],
        env=home.environment(role=None),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    found = Elsewhere(home, daemon)
    try:
        until(lambda: found.ctl("status").returncode == 0 or daemon.poll() is not None, PATIENCE, "it answers")
        assert daemon.poll() is None
        yield found
    finally:
        processes.stop(daemon, (signal.SIGTERM,))


def test_daemons_of_two_machines_that_share_a_home_leave_each_other_alone() -> None:
    with Home() as home:
        state = home.folder / "state"
        state.mkdir(mode=0o700)
        (state / "epoch").write_text("7\n")  # of a version that knew of no machines
        home.start_daemon()
        here = ask(home, "status")["daemon"]
        assert here["epoch"] == 8
        with elsewhere(home) as there:
            assert (there.status()["pid"], there.status()["epoch"]) == (there.daemon.pid, 9)
            (part,) = state.glob("machine-*")
            assert [Path(folder, "epoch").read_text() for folder in (state, part)] == ["8\n", "9\n"]
            said = [found["text"] for found in json.loads(there.ctl("doctor", "--json").stdout)["findings"]]
            assert f"{state} belongs to {machine.this_machine().host}; ours is {part}" in said
            assert there.ctl("stop").returncode == 0
            until(lambda: there.daemon.poll() is not None, PATIENCE, "the one that was meant has ended")
        assert ask(home, "status")["daemon"]["pid"] == here["pid"]
