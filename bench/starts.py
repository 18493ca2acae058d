"""How long a start takes, both programs by turns: a moment in which the machine is busy then meets both."""

import time
from collections.abc import Sequence

from bench.programs import Program
from rig.daemon import Home
from rig.link import Link
from rig.shim import ShimProcess

ROUNDS = 12


def warm(home: Home) -> int:
    """Start a daemon that has had a conversation, as it has on any day but the first minute of one; returns its pid."""
    daemon = home.start_daemon()
    # Over a link of ours: a shim answers by itself when the daemon takes long, and the daemon would still be busy.
    with Link(home.place.socket, home.environment()) as link:
        link.initialize()
        link.request("tools/list")
    return daemon.pid


def initialize_s(programs: Sequence[Program]) -> dict[str, list[float]]:
    """Per program name: samples of process started → `initialize` answered. No Central is needed for that."""
    samples: dict[str, list[float]] = {program.name: [] for program in programs}
    with Home() as home:
        if any(program.has_daemon for program in programs):
            warm(home)
        for _ in range(ROUNDS):
            for program in programs:
                with ShimProcess([program.command], home.environment()) as process:
                    process.initialize()
                    samples[program.name].append(time.perf_counter() - process.started_at)
    return samples
