"""Many conversations through one daemon, as links of this process: what the daemon adds, without the shims' processes."""

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import psutil

from bench import floor, starts, usage
from bench.crowd import Callers, percentile
from bench.programs import OURS
from rig.central import Central
from rig.daemon import Home
from rig.link import Link
from rig.proxy import Proxy

COUNTS = (50, 200)
BOARD = "scale"
SUBJECT = "scale"
BROADCASTS = 15
FLOOR_SAMPLES = 10  # before each broadcast
SETTLE_S = 0.5  # seconds after the last wake in which late requests still count for the broadcast

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Broadcast:
    """One event that wakes everybody. Milliseconds from its creation on."""

    floor_ms: list[float]
    """Measured directly before."""
    wake_ms: list[float]
    requests: int
    central_ms: float
    """How long Central had the requests that were answered before the first answer was."""

    @property
    def first_ms(self) -> float:
        """When the first answer was complete."""
        return min(self.wake_ms)

    @property
    def spread_ms(self) -> float:
        """From the first answer to the last."""
        return max(self.wake_ms) - self.first_ms


@dataclass(slots=True)
class Scale:
    """What `n` conversations showed."""

    n: int
    broadcasts: list[Broadcast] = field(default_factory=list)
    daemon_mib: tuple[float, float] = (0.0, 0.0)
    """PSS of the daemon without a conversation, and while all wait."""
    entry_s: float = 0.0
    """All call a2a_wait for the first time, at once → the last request to Central of that."""
    again_s: float = 0.0
    """The same from known cursors, median: nobody joins."""
    joins: int = 0
    tcp: int = 0
    streams: int = 0

    def floor_ms(self, share: float) -> float:
        """A percentile over all samples of the floor."""
        return percentile([sample for broadcast in self.broadcasts for sample in broadcast.floor_ms], share)

    @property
    def mib_per_conversation(self) -> float:
        """What the daemon grew by."""
        return (self.daemon_mib[1] - self.daemon_mib[0]) / self.n

    @property
    def most_requests(self) -> int:
        """Of the broadcast that cost most."""
        return max(broadcast.requests for broadcast in self.broadcasts)

    def wake_ms(self, share: float) -> float:
        """A percentile over all wakes of all broadcasts."""
        return percentile([sample for broadcast in self.broadcasts for sample in broadcast.wake_ms], share)


class Links(Callers[Link]):
    """Conversations without a process of their own, all on one board, with one credential."""

    def open(self, home: Home, token: str, n: int, stack: ExitStack) -> None:
        """Connect and shake hands, one after the other; the links end with `stack`."""
        for number in range(n):
            extra = {"ONBOARD_AGENT_INSTANCE": f"w{number}", "PURSERS_HOST": "headless"}
            environment = home.environment(self.proxy.url, token, self.board, "scale", extra=extra)
            self.speakers.append(stack.enter_context(Link(home.place.socket, environment)))
            self.speakers[-1].initialize()
        self.cursors = [None] * n


def measure(n: int, say: Say) -> Scale:
    """Run once, on a Central of its own. Everything that was started has ended when this returns or raises."""
    seen = Scale(n)
    with Central() as central, Proxy(central.port) as proxy, Home() as home, ExitStack() as stack:
        for board in (BOARD, floor.BOARD):
            central.create_board(board)
        daemon = psutil.Process(starts.warm(home))
        links = Links(OURS, proxy, BOARD)
        before = usage.memory_mib([daemon])[0]
        _enter(links, home, central.worker(SUBJECT, BOARD), seen, stack, say)
        seen.daemon_mib = before, usage.memory_mib([daemon])[0]
        with floor.Floor(central, central.worker(SUBJECT, floor.BOARD)) as bottom:
            _broadcast(links, central, bottom, seen, say)
    return seen


def _enter(links: Links, home: Home, token: str, seen: Scale, stack: ExitStack, say: Say) -> None:
    say("opening links")
    links.open(home, token, seen.n, stack)
    say("all enter their first wait at once")
    before = links.proxy.mark()
    links.arm()
    seen.entry_s, seen.joins = links.entered_s, links.proxy.count("board_join", before)
    seen.tcp, seen.streams = links.proxy.live, len(links.proxy.streams)


def _broadcast(links: Links, central: Central, bottom: floor.Floor, seen: Scale, say: Say) -> None:
    again: list[float] = []
    for number in range(BROADCASTS):
        say(f"broadcast {number + 1} of {BROADCASTS}")
        if number:
            links.arm()
            again.append(links.entered_s)
        floors = [bottom.sample_ms() for _ in range(FLOOR_SAMPLES)]
        before, began = links.proxy.mark(), time.perf_counter()
        central.create_ticket(BOARD, f"broadcast {number}")
        woken = links.woken()
        wakes = [(at - began) * 1e3 for at in woken]
        time.sleep(SETTLE_S)  # the measured span, not a synchronisation
        central_ms = links.proxy.central_s(before, min(woken)) * 1e3
        seen.broadcasts.append(Broadcast(floors, wakes, links.proxy.count(None, before), central_ms))
    seen.again_s = statistics.median(again)
