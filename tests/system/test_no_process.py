"""A system that gives no more processes when a shim would start the daemon: the limit of a user, which binds nobody who is
root, so that root's tests let the shim be a user of its own."""

import os
import shutil
import subprocess
import sys

import pytest

from pursers_shim import starts
from rig.daemon import Home
from rig.shim import SHIM, ShimProcess, ToolError
from rig.wait import until
from system.scene import PATIENCE

SOMEBODY = 61234
"""A user id that nobody has."""

NO_MORE = "import os, resource as r, sys; r.setrlimit(r.RLIMIT_NPROC, (1, 4096)); os.execv(sys.argv[1], sys.argv[1:])"
"""Runs a program that may have one process, itself, until somebody allows more."""

MORE = "import resource as r, sys; r.prlimit(int(sys.argv[1]), r.RLIMIT_NPROC, (4096, 4096))"

LIMITED = [sys.executable, "-c", NO_MORE]


def become_somebody() -> list[str] | None:
    """A command that runs another one as somebody who is bound by limits; None where that cannot be."""
    if sys.platform != "linux":
        return None  # nobody could lift the limit of a running process
    if os.getuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return None
    # The interpreter may lie in a folder of root's.
    who = [setpriv, f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups"]
    as_somebody = [*who, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search", "--"]
    done = subprocess.run([*as_somebody, sys.executable, "-c", ""], capture_output=True, timeout=PATIENCE)
    return as_somebody if done.returncode == 0 else None


def test_a_shim_that_gets_no_process_for_the_daemon_goes_on_and_starts_it_when_there_is_one() -> None:
    somebody = become_somebody()
    if somebody is None:
        pytest.skip("limits of a user cannot be set for a single process here")
    with Home() as home:
        if os.getuid() == 0:
            os.chown(home.folder, SOMEBODY, SOMEBODY)
        with ShimProcess([*somebody, *LIMITED, SHIM], home.environment()) as shim:
            assert shim.initialize()["serverInfo"]
            call = shim.start_tool("project_registry_get")

            def refused() -> bool:
                found = starts.read(home.place)
                return found is not None and found.refused and found.words == "Resource temporarily unavailable"

            until(refused, PATIENCE, "the system gives no process, and that is noted")
            assert home.daemons() == []
            assert not call.done
            lifted = subprocess.run([*somebody, sys.executable, "-c", MORE, str(shim.pid)], timeout=PATIENCE)
            assert lifted.returncode == 0
            # It is the daemon that answers: it has no credential for this conversation.
            with pytest.raises(ToolError) as answered:
                call.result(PATIENCE)
            assert "ONBOARD_CENTRAL_TOKEN" in answered.value.text
            assert len(home.daemons()) == 1
            assert shim.stderr == ""
