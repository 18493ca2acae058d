"""N conversations on one board, spoken to as a host would."""

import statistics
import time
from pathlib import Path
from typing import Generic, TypeVar

import psutil

from bench.programs import Program
from rig.daemon import Home
from rig.proxy import Proxy
from rig.shim import Json, Pending, ShimProcess
from rig.speaker import Speaker

S = TypeVar("S", bound=Speaker)

QUIET_S = 0.7  # seconds without a request to Central after which every wait is taken to be blocking
ARM_TIMEOUT = 180.0  # seconds for all waits to block
FIRST_ANSWER = 120.0  # seconds for the first call of a conversation


class Callers(Generic[S]):
    """Who waits, and from which cursor: the part that does not care what a conversation runs in."""

    def __init__(self, program: Program, proxy: Proxy, board: str) -> None:
        self.program = program
        self.proxy = proxy
        self.board = board
        self.speakers: list[S] = []
        self.waits: list[Pending[Json]] = []
        self.cursors: list[int | None] = []
        self.entered_s = 0.0
        """Of the last `arm()`: its first call → the last request to Central that it led to."""

    def join(self) -> None:
        """Let everybody call a2a_wait once, which takes the seats and gives the first cursors."""
        # Central joins one seat after the other; a wait that ends before its turn has no cursor yet.
        timeout_s = 1 + len(self.speakers) // 5
        first = [self._wait(speaker, None, timeout_s) for speaker in self.speakers]
        self.cursors = [self._cursor(wait) for wait in first]

    def arm(self, timeout_s: int = 120) -> int:
        """Call a2a_wait for everybody, again for those that return at once, until all block and Central hears nothing.

        Returns how many waits came back although nothing had happened.
        """
        before, began = self.proxy.mark(), time.perf_counter()
        self.waits = [self._wait(*pair, timeout_s) for pair in zip(self.speakers, self.cursors, strict=True)]
        returned = 0
        deadline = time.monotonic() + ARM_TIMEOUT
        quiet_since, heard = time.monotonic(), before
        while time.monotonic() - quiet_since < QUIET_S:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.program.name}: the waits do not come to rest")
            time.sleep(0.02)
            again = [index for index, wait in enumerate(self.waits) if wait.done]
            for index in again:
                self.again(index, timeout_s)
            returned += len(again)
            if again or self.proxy.mark() != heard:
                quiet_since, heard = time.monotonic(), self.proxy.mark()
        self.entered_s = max((request.at for request in self.proxy.seen(None, before)), default=began) - began
        return returned

    def again(self, index: int, timeout_s: int) -> None:
        """Take the answer of one wait and wait again from its cursor."""
        self.cursors[index] = self._cursor(self.waits[index])
        self.waits[index] = self._wait(self.speakers[index], self.cursors[index], timeout_s)

    def woken(self) -> list[float]:
        """Wait until every wait has returned; when each did, as time.perf_counter(). Each must have an event."""
        for index, wait in enumerate(self.waits):
            result = wait.result(ARM_TIMEOUT)
            self.cursors[index] = self._cursor(wait)
            if not result["events"]:
                raise RuntimeError(f"{self.program.name}: a wait returned without an event: {result}")
        return [wait.answered_at for wait in self.waits if wait.answered_at is not None]

    def _wait(self, speaker: Speaker, cursor: int | None, timeout_s: int) -> Pending[Json]:
        return speaker.start_tool("a2a_wait", self.program.wait_arguments(self.board, cursor, timeout_s))

    def _cursor(self, wait: Pending[Json]) -> int:
        return self.program.cursor(self.board, wait.result(FIRST_ANSWER))


class Crowd(Callers[ShimProcess]):
    """Each conversation is a process of its own. `close()` ends them."""

    def __init__(self, program: Program, home: Home, proxy: Proxy, token: str, board: str) -> None:
        super().__init__(program, proxy, board)
        self.initialize_s: list[float] = []
        """Per conversation: process started → `initialize` answered."""
        self.tools_s: list[float] = []
        """Per conversation: process started → `tools/list` answered."""
        self._home = home
        self._token = token

    def close(self) -> None:
        """End every process."""
        for shim in self.speakers:
            shim.close()

    def start(self, n: int) -> None:
        """Start `n` conversations one after the other, so that each start is measured alone."""
        for number in range(n):
            shim = self._open(number)
            shim.initialize()
            self.initialize_s.append(time.perf_counter() - shim.started_at)
            shim.request("tools/list")
            self.tools_s.append(time.perf_counter() - shim.started_at)

    def processes(self) -> list[psutil.Process]:
        """The conversations' processes with their children, without a daemon."""
        own = [psutil.Process(shim.process.pid) for shim in self.speakers if shim.process.poll() is None]
        return own + [child for process in own for child in process.children(recursive=True)]

    def close_stdin(self) -> None:
        """All hosts leave at the same moment."""
        for shim in self.speakers:
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
        environment = self._home.environment(self.proxy.url, self._token, self.board, "bench", extra=extra)
        self.speakers.append(ShimProcess([self.program.command], environment))
        return self.speakers[-1]


def percentile(samples: list[float], share: float) -> float:
    """The smallest sample that at least `share` of all do not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, min(len(ordered) - 1, round(share * len(ordered) + 0.499999) - 1))]


def median(samples: list[float]) -> float:
    """The median, 0 of nothing."""
    return statistics.median(samples) if samples else 0.0
