"""N conversations on one board, each a process of its own, spoken to as a host would."""

import statistics
import time
from pathlib import Path

import psutil

from bench.programs import Program
from rig.daemon import Home
from rig.proxy import Proxy
from rig.shim import Json, Pending, ShimProcess

QUIET_S = 0.7  # seconds without a request to Central after which every wait is taken to be blocking
ARM_TIMEOUT = 180.0  # seconds for all waits to block
FIRST_ANSWER = 120.0  # seconds for the first call of a conversation


class Crowd:
    """The conversations and their cursors. Used as a context manager by `with crowd:`; ends its processes."""

    def __init__(self, program: Program, home: Home, proxy: Proxy, token: str, board: str) -> None:
        self.program = program
        self.shims: list[ShimProcess] = []
        self.waits: list[Pending[Json]] = []
        self.initialize_s: list[float] = []
        """Per conversation: process started → `initialize` answered."""
        self.tools_s: list[float] = []
        """Per conversation: process started → `tools/list` answered."""
        self._cursors: list[int] = []
        self._home = home
        self._proxy = proxy
        self._token = token
        self._board = board

    def close(self) -> None:
        """End every process."""
        for shim in self.shims:
            shim.close()

    def start(self, n: int) -> None:
        """Start `n` conversations one after the other, so that each start is measured alone."""
        for number in range(n):
            shim = self._open(number)
            shim.initialize()
            self.initialize_s.append(time.perf_counter() - shim.started_at)
            shim.request("tools/list")
            self.tools_s.append(time.perf_counter() - shim.started_at)

    def join(self) -> None:
        """Let everybody call a2a_wait once, which takes the seats and gives the first cursors."""
        # Central joins one seat after the other; a wait that ends before its turn has no cursor yet.
        timeout_s = 1 + len(self.shims) // 5
        first = [self._wait(shim, None, timeout_s) for shim in self.shims]
        self._cursors = [self._cursor(wait) for wait in first]

    def arm(self, timeout_s: int = 120) -> int:
        """Call a2a_wait for everybody, again for those that return at once, until all block and Central hears nothing.

        Returns how many waits came back although nothing had happened.
        """
        self.waits = [self._wait(*pair, timeout_s) for pair in zip(self.shims, self._cursors, strict=True)]
        returned = 0
        deadline = time.monotonic() + ARM_TIMEOUT
        quiet_since, heard = time.monotonic(), self._proxy.mark()
        while time.monotonic() - quiet_since < QUIET_S:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.program.name}: the waits do not come to rest")
            time.sleep(0.02)
            again = [index for index, wait in enumerate(self.waits) if wait.done]
            for index in again:
                self._cursors[index] = self._cursor(self.waits[index])
                self.waits[index] = self._wait(self.shims[index], self._cursors[index], timeout_s)
            returned += len(again)
            if again or self._proxy.mark() != heard:
                quiet_since, heard = time.monotonic(), self._proxy.mark()
        return returned

    def woken(self) -> list[float]:
        """Wait until every wait has returned; when each did, as time.perf_counter(). Each must have an event."""
        for index, wait in enumerate(self.waits):
            result = wait.result(ARM_TIMEOUT)
            self._cursors[index] = self._cursor(wait)
            if not result["events"]:
                raise RuntimeError(f"{self.program.name}: a wait returned without an event: {result}")
        return [wait.answered_at for wait in self.waits if wait.answered_at is not None]

    def processes(self) -> list[psutil.Process]:
        """The conversations' processes with their children, without a daemon."""
        own = [psutil.Process(shim.process.pid) for shim in self.shims if shim.process.poll() is None]
        return own + [child for process in own for child in process.children(recursive=True)]

    def close_stdin(self) -> None:
        """All hosts leave at the same moment."""
        for shim in self.shims:
            shim.close_stdin()

    def _open(self, number: int) -> ShimProcess:
        folder = Path(self._home.folder) / f"seat{number}"
        folder.mkdir(mode=0o700)
        extra = {
            "ONBOARD_AGENT_INSTANCE": f"w{number}",
            "PURSERS_HOST": "headless",
            # Every bridge has its own files, as on a machine where each host configures its own.
            "PURSERS_BRIDGE_STATE_DIR": str(folder),
            "PURSERS_BRIDGE_STATS": str(folder / "stats.json"),
        }
        environment = self._home.environment(self._proxy.url, self._token, self._board, "bench", extra=extra)
        self.shims.append(ShimProcess([self.program.command], environment))
        return self.shims[-1]

    def _wait(self, shim: ShimProcess, cursor: int | None, timeout_s: int) -> Pending[Json]:
        return shim.start_tool("a2a_wait", self.program.wait_arguments(self._board, cursor, timeout_s))

    def _cursor(self, wait: Pending[Json]) -> int:
        return self.program.cursor(self._board, wait.result(FIRST_ANSWER))


def percentile(samples: list[float], share: float) -> float:
    """The smallest sample that at least `share` of all do not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, min(len(ordered) - 1, round(share * len(ordered) + 0.499999) - 1))]


def median(samples: list[float]) -> float:
    """The median, 0 of nothing."""
    return statistics.median(samples) if samples else 0.0
