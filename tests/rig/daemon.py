"""A private home for one daemon: its folder, the environment of everything that belongs to it, and a clean end."""

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from pursers_shim import paths
from pursers_shim.launch import lock_holder
from rig import canary, processes
from rig.shim import SHIM, ShimProcess
from rig.wait import until

START_TIMEOUT = 60.0  # seconds until a started daemon must listen
CLOSE_TIMEOUT = 60.0  # seconds until everything of a home must have ended
CTL_TIMEOUT = 60.0  # seconds for one pursersctl command

DAEMON = str(processes.BIN / "pursersd")
CTL = str(processes.BIN / "pursersctl")


class Home:
    """A PURSERSD_HOME under /tmp; short, because a socket's path is limited. `close()` leaves no process and no file.

    `variables` go into the environment of everything started here.
    """

    def __init__(self, **variables: str) -> None:
        # The run's name in the path is how processes.of_this_run finds a daemon that dropped its environment.
        self.folder = Path(tempfile.mkdtemp(prefix=f"pd-{processes.RUN}-", dir="/tmp"))
        self.place = paths.place({paths.HOME_VARIABLE: str(self.folder)})
        self._variables = variables
        self._started: list[subprocess.Popen[bytes]] = []
        self._shims: list[ShimProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def environment(
        self,
        url: str | None = None,
        token: str | None = None,
        board: str | None = None,
        agent: str | None = None,
        role: str | None = "worker",
        extra: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """The environment of a host's server entry that lives in this home; what is None stays unset."""
        settings = {
            "ONBOARD_CENTRAL_URL": url,
            "ONBOARD_CENTRAL_TOKEN": token,
            "ONBOARD_BOARD_ID": board,
            "ONBOARD_AGENT_NAME": agent,
            "PURSERS_ROLE": role,
        }
        private = {
            "HOME": str(self.folder / "user"),
            "PURSERSD_HOME": str(self.folder),
            # The bridge knows nothing of PURSERSD_HOME; keep its files here as well.
            "PURSERS_BRIDGE_STATE_DIR": str(self.folder / "bridge"),
            "PURSERS_BRIDGE_STATS": str(self.folder / "bridge-stats.json"),
        }
        given = {name: value for name, value in settings.items() if value is not None}
        return processes.environment({**private, **self._variables, **given, **(extra or {})})

    def shim(self, environment: Mapping[str, str] | None = None, *arguments: str, hosted: bool = False) -> ShimProcess:
        """Start a shim here; `close()` ends it if nobody did before."""
        shim = ShimProcess([SHIM, *arguments], environment or self.environment(), hosted=hosted)
        self._shims.append(shim)
        return shim

    def end_shims(self) -> None:
        """End the shims that were started here so far."""
        while self._shims:
            self._shims.pop().close()

    def start_daemon(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start `pursersd --foreground` and return when it listens."""
        with (self.folder / "daemon.out").open("ab") as output:
            daemon = subprocess.Popen(
                [DAEMON, "--foreground", *arguments],
                env=self.environment(role=None),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(daemon)
        until(lambda: self._listens(daemon), START_TIMEOUT, "the daemon listens")
        return daemon

    def daemons(self) -> list[psutil.Process]:
        """The daemon processes of this home, whether they hold its lock or not."""
        return [process for process in processes.of_home(self.folder) if _is_daemon(process)]

    def daemon_pid(self) -> int:
        """The process id of the daemon of this home, that is, of the holder of its lock. AssertionError if there is none."""
        pid = lock_holder(self.place.lock)
        assert pid, f"no daemon holds the lock; processes: {processes.describe(self.daemons())}"
        return pid

    def ctl(
        self, *arguments: str, stdin: str = "", timeout: float = CTL_TIMEOUT, **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run pursersctl here, with these variables more in its environment."""
        done = subprocess.run(
            [CTL, *arguments],
            env=self.environment(role=None, extra=variables),
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        canary.look(f"output of pursersctl {arguments[:1]}", (done.stdout + done.stderr).encode())
        return done

    def ps(self) -> list[dict[str, Any]]:
        """The rows of `pursersctl ps --json`; AssertionError if there is no daemon."""
        rows: list[dict[str, Any]] = self._json("ps")["seats"]
        return rows

    def status(self) -> dict[str, Any]:
        """The answer of `pursersctl status --json`; AssertionError if there is no daemon."""
        return self._json("status")

    def output(self) -> str:
        """What daemons started by `start_daemon` printed."""
        file = self.folder / "daemon.out"
        return file.read_text(errors="replace") if file.exists() else ""

    def close(self) -> None:
        """End every process of this home and remove its folder; AssertionError if a process stays."""
        canary.look_at_home(self.folder)
        self._forbid_start()
        for shim in self._shims:
            shim.close()
        for daemon in self._started:
            _continue(daemon.pid)
            processes.stop(daemon, (signal.SIGTERM,))
        canary.look_at_home(self.folder)
        until(self._is_empty, CLOSE_TIMEOUT, f"nothing is left in {self.folder}")

    def _forbid_start(self) -> None:
        """A shim that loses its daemon now must not start another one."""
        with contextlib.suppress(OSError):  # a test may have put anything where the folder belongs
            Path(self.place.stopped).touch()

    def _is_empty(self) -> bool:
        # Twice, because a process that is between fork and exec may not show its environment.
        found = [processes.of_home(self.folder) for _ in range(2)]
        for process in found[0]:
            _continue(process.pid)
        processes.end(found[0])
        if any(found):
            return False
        shutil.rmtree(self.folder, ignore_errors=True)
        return not self.folder.exists()

    def _json(self, verb: str) -> dict[str, Any]:
        done = self.ctl(verb, "--json")
        assert done.returncode == 0, f"pursersctl {verb}: exit {done.returncode}: {done.stdout} {done.stderr}"
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def _listens(self, daemon: "subprocess.Popen[bytes]") -> bool:
        if daemon.poll() is not None:
            raise RuntimeError(f"the daemon ended with {daemon.returncode}: {self.output()[-2000:]}")
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(self.place.socket)
            except OSError:
                return False
        return True


def _is_daemon(process: psutil.Process) -> bool:
    try:
        words = process.cmdline()[:4]
    except psutil.Error:
        return False
    return any(Path(word).name == "pursersd" or word.startswith("pursersd.") for word in words)


def _continue(pid: int) -> None:
    """A stopped process (SIGSTOP) cannot obey a SIGTERM."""
    try:
        psutil.Process(pid).resume()
    except psutil.NoSuchProcess:
        return
