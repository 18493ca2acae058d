"""One run: N conversations with one program on a fresh Central behind the counting proxy."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil

from bench import floor, starts, usage
from bench.crowd import Crowd
from bench.programs import Program
from rig import processes
from rig.central import Central
from rig.daemon import Home
from rig.proxy import Proxy
from rig.wait import until

BOARD = "bench"
SUBJECT = "bench"
SAMPLES = 60  # wake latencies to collect, within the limits of the next line
EVENTS = (5, 15)  # fewest and most events
PS_SAMPLES = 9
FLOOR_SAMPLES = 3  # before each event
LEAVE_S = 0.5  # seconds after the end of stdin at which nothing may be alive
LEAVE_LIMIT_S = 15.0  # seconds after which we stop waiting for them
SETTLE_S = 0.5  # seconds after the last wake in which late requests still count for the event

Say = Callable[[str], None]


@dataclass(slots=True)
class Figures:
    """What one run showed. Seconds, milliseconds and MiB as the names say."""

    program: str
    n: int
    floor_ms: list[float] = field(default_factory=list)
    initialize_s: list[float] = field(default_factory=list)
    tools_s: list[float] = field(default_factory=list)
    wake_ms: list[float] = field(default_factory=list)
    requests_per_event: list[int] = field(default_factory=list)
    pss_mib: float = 0.0
    rss_mib: float = 0.0
    daemon_pss_mib: float = 0.0
    tcp: int = 0
    streams: int = 0
    joins_per_seat: float = 0.0
    returned_early: int = 0
    idle_s: float = 0.0
    idle_requests: int = 0
    idle_cpu_ms_per_s: float = 0.0
    alive_after_eof: int = 0
    left_after_s: float | None = None
    """When the last process was gone after stdin ended; None if one was still there after LEAVE_LIMIT_S."""
    ps_s: list[float] = field(default_factory=list)


def measure(program: Program, n: int, idle_s: float, say: Say) -> Figures:
    """Run once. Everything that was started has ended when this returns or raises."""
    figures = Figures(program.name, n)
    with Central() as central, Proxy(central.port) as proxy, Home() as home:
        for board in (BOARD, floor.BOARD):
            central.create_board(board)
        daemon = [psutil.Process(starts.warm(home))] if program.has_daemon else []
        crowd = Crowd(program, home, proxy, central.worker(SUBJECT, BOARD), BOARD)
        try:
            _start(crowd, proxy, figures, say)
            with floor.Floor(central, central.worker(SUBJECT, floor.BOARD)) as bottom:
                _wake(crowd, central, proxy, bottom, daemon, figures, say)
            _rest(crowd, proxy, daemon, figures, idle_s, say)
            if program.has_daemon:
                _list(home, figures, say)
            _leave(crowd, figures, say)
        finally:
            crowd.close()
    return figures


def _start(crowd: Crowd, proxy: Proxy, figures: Figures, say: Say) -> None:
    say("starting conversations one by one")
    crowd.start(figures.n)
    figures.initialize_s, figures.tools_s = crowd.initialize_s, crowd.tools_s
    say("joining the board")
    before = proxy.mark()
    crowd.join()
    figures.returned_early = crowd.arm()
    figures.joins_per_seat = proxy.count("board_join", before) / figures.n


def _wake(
    crowd: Crowd,
    central: Central,
    proxy: Proxy,
    bottom: floor.Floor,
    daemon: list[psutil.Process],
    figures: Figures,
    say: Say,
) -> None:
    events = min(max(EVENTS[0], -(-SAMPLES // figures.n)), EVENTS[1])
    for number in range(events):
        say(f"event {number + 1} of {events}")
        if number:
            figures.returned_early += crowd.arm()
        else:
            figures.tcp, figures.streams = proxy.live, len(proxy.streams)
            figures.pss_mib, figures.rss_mib = usage.memory_mib(crowd.processes() + daemon)
            figures.daemon_pss_mib = usage.memory_mib(daemon)[0]
        # Between the events, so that both meet the same moods of the machine.
        figures.floor_ms += [bottom.sample_ms() for _ in range(FLOOR_SAMPLES)]
        before, began = proxy.mark(), time.perf_counter()
        central.create_ticket(BOARD, f"bench {number}")
        figures.wake_ms += [(at - began) * 1e3 for at in crowd.woken()]
        time.sleep(SETTLE_S)  # the measured span, not a synchronisation
        figures.requests_per_event.append(proxy.count(None, before))


def _rest(crowd: Crowd, proxy: Proxy, daemon: list[psutil.Process], figures: Figures, idle_s: float, say: Say) -> None:
    say("waiting for rest")
    figures.returned_early += crowd.arm(timeout_s=int(idle_s) + 60)
    running = crowd.processes() + daemon
    say(f"idle for {idle_s:.0f} s")
    requests, cpu, began = proxy.mark(), usage.cpu_s(running), time.perf_counter()
    time.sleep(idle_s)  # the measured span
    span = time.perf_counter() - began
    figures.idle_s, figures.idle_requests = span, proxy.count(None, requests)
    figures.idle_cpu_ms_per_s = 1000 * (usage.cpu_s(running) - cpu) / span


def _list(home: Home, figures: Figures, say: Say) -> None:
    say("pursersctl ps")
    for _ in range(PS_SAMPLES):
        began = time.perf_counter()
        listed = home.ctl("ps")
        figures.ps_s.append(time.perf_counter() - began)
        if listed.returncode:
            raise RuntimeError(f"pursersctl ps: {listed.stderr}")


def _leave(crowd: Crowd, figures: Figures, say: Say) -> None:
    say("all hosts leave in the middle of a wait")
    leaving = crowd.processes()
    began = time.perf_counter()
    crowd.close_stdin()
    _, alive = psutil.wait_procs(leaving, LEAVE_S)
    figures.alive_after_eof = len(alive)
    _, alive = psutil.wait_procs(alive, LEAVE_LIMIT_S)
    figures.left_after_s = None if alive else time.perf_counter() - began


def check_nothing_left() -> None:
    """AssertionError if a process of this run is still there after a moment."""
    until(lambda: not processes.of_this_run(), 5, "every process of this run has ended")
