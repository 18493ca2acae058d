"""Everything at once, and still each event once and in order, each request answered once, and nothing left.

A minute here, always with the same dice. `make soak` lets it go on (SECONDS=…, CONVERSATIONS=…, SEED=…) and tells how
memory and descriptors of the daemon develop.
"""

import contextlib
import os
import threading
import time

import psutil
import pytest

from rig.central import Central
from rig.daemon import Home
from rig.proxy import Proxy
from system.chaos import AROUND_THE_DAEMON, FAULTS, World

SECONDS = float(os.environ.get("SECONDS", "60"))
CONVERSATIONS = int(os.environ.get("CONVERSATIONS", "20"))
SEED = int(os.environ.get("SEED", "1"))
IS_SOAK = "SECONDS" in os.environ

MIB = 1024 * 1024
WARM = 0.25
"""The part of the time that belongs to deaths of the daemon when it is a soak; after it, one daemon is watched."""


class Watch:
    """Memory and descriptors of the daemon, once a second while the block runs."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch")
        self.samples: list[tuple[float, int, int]] = []
        """Time, bytes, descriptors."""

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def __str__(self) -> str:
        """The figures, with the slopes over the second half: by then the caches are full."""
        late = self.samples[len(self.samples) // 2 :]
        memory, descriptors = [s[1] for s in self.samples], [s[2] for s in self.samples]
        return (
            f"{self.samples[-1][0] - self.samples[0][0]:.0f} s of one daemon: memory {memory[0] / MIB:.1f} to "
            f"{memory[-1] / MIB:.1f} MiB (most {max(memory) / MIB:.1f}), {slope(late, 1) * 3600 / MIB:+.2f} MiB per hour; "
            f"descriptors {descriptors[0]} to {descriptors[-1]} (most {max(descriptors)}), {slope(late, 2) * 3600:+.1f} per hour"
        )

    def _look(self) -> None:
        while not self._over.wait(1.0):
            with self._process.oneshot():
                self.samples.append((time.monotonic(), self._process.memory_info().rss, self._process.num_fds()))


def slope(samples: list[tuple[float, int, int]], column: int) -> float:
    """Growth per second, by least squares."""
    times, values = [s[0] for s in samples], [float(s[column]) for s in samples]
    mean_time, mean = sum(times) / len(times), sum(values) / len(values)
    spread = sum((t - mean_time) ** 2 for t in times)
    return sum((t - mean_time) * (v - mean) for t, v in zip(times, values, strict=True)) / spread if spread else 0.0


def test_whatever_happens_each_event_comes_once_and_nothing_is_left(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled() if IS_SOAK else contextlib.nullcontext():
        print(f"seed {SEED}")
    with Central() as central, Proxy(central.port) as proxy:
        world = World(central, proxy, home, CONVERSATIONS, SEED)
        world.run(SECONDS * WARM if IS_SOAK else SECONDS, FAULTS)
        if IS_SOAK:
            world.live(5.0)
            with Watch(home.daemon_pid()) as watch:
                world.run(SECONDS * (1 - WARM), AROUND_THE_DAEMON)
            with capsys.disabled():
                print(f"\n{watch}")
        world.settle()
        print(world)
        world.leave()
