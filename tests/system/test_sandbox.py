"""A host that runs in a sandbox with process ids of its own: the kernel, not the shim, says which process that is."""

import os
import shutil
import signal
import subprocess
import sys

import psutil
import pytest

from rig.central import Central
from rig.daemon import Home
from rig.shim import SHIM, ShimProcess
from rig.wait import until
from system.scene import PATIENCE, Caller, rows, until_blocking, until_listed

UNSHARE = shutil.which("unshare")


def can_isolate() -> bool:
    """Whether we may have a namespace of process ids."""
    if sys.platform != "linux" or UNSHARE is None or os.getuid() != 0:
        return False
    return subprocess.run([UNSHARE, "-p", "-f", "true"], capture_output=True, timeout=PATIENCE).returncode == 0


pytestmark = pytest.mark.skipif(not can_isolate(), reason="a namespace of process ids is not allowed here")


@pytest.mark.parametrize("where", ["outside", "inside"])
def test_a_conversation_out_of_a_sandbox_is_one_like_others(
    central: Central, home: Home, board: str, where: str
) -> None:
    """The daemon runs outside; or the shim, the first process of a container, has started it in there."""
    if where == "outside":
        home.start_daemon()
    environment = home.environment(central.url, central.worker("ann", board), board, "boxed")
    with ShimProcess([str(UNSHARE), "-p", "-f", "--mount-proc", SHIM], environment) as sandbox:
        sandbox.initialize()
        caller = Caller(sandbox)
        caller.arm()
        until_blocking(home, 1)
        (shim,) = psutil.Process(sandbox.process.pid).children()
        (row,) = until_listed(home, 1)
        seen_there = (shim.pid, sandbox.process.pid) if where == "outside" else (1, None)
        assert (row["shim_pid"], row["host_pid"]) == seen_there
        ticket = central.create_ticket(board, "into the sandbox")
        assert [event["ticket_id"] for event in caller.take()["events"]] == [ticket]
        sandbox.kill(signal.SIGKILL)  # the host
        if where == "outside":
            until(lambda: rows(home) == [], PATIENCE, "the conversation is over")
            shim.wait(PATIENCE)  # it was told to end, although we hold its input
        else:
            shim.kill()
            until(lambda: not home.daemons(), PATIENCE, "what ran in the sandbox has ended with it")
