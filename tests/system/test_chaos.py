"""Everything at once, and still each event once and in order, each request answered once, and nothing left.

A minute here, always with the same dice. `make soak` lets it go on (SECONDS=…, CONVERSATIONS=…, SEED=…) and tells how
memory and descriptors of the daemon develop.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable

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

ROOM = 5 * MIB
"""What the daemon's memory may grow by while a soak's second half is watched, whatever happens: Central's return after an
outage, with a hundred calls at once, leaves pages that are not given back to the system."""

ROOM_PER_EVENT = 256
"""And for each event that is delivered meanwhile. With a hundred conversations and ten minutes 2 KiB that stay of each event
are found, with an hour half a KiB."""

LEAST = 120.0
"""Seconds that one daemon must have been watched before its growth says anything: before that its tables fill."""


class Watch:
    """Memory and descriptors of the daemon, once a second while the block runs."""

    def __init__(self, pid: int, delivered: Callable[[], int]) -> None:
        self._process = psutil.Process(pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch")
        self.samples: list[tuple[float, int, int]] = []
        """Time, bytes, descriptors."""
        self.delivered = delivered
        """How many events the models have been told by now."""
        self._counts: list[int] = []
        """The same at each of the samples."""

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def __str__(self) -> str:
        """The figures. All of it is mostly warming up: tables fill, and imports are made; the last third tells best."""
        memory, descriptors = [s[1] for s in self.samples], [s[2] for s in self.samples]
        parts = {"all": 0.0, "second half": 1 / 2, "last third": 2 / 3}
        rates = ", ".join(
            f"{slope(self._since(part), 1) * 3600 / MIB:+.2f} MiB per hour ({name})" for name, part in parts.items()
        )
        grown, events = self.grown
        return (
            f"{self.seconds:.0f} s of one daemon: memory {memory[0] / MIB:.1f} to {memory[-1] / MIB:.1f} MiB "
            f"(most {max(memory) / MIB:.1f}): {rates}; in the second half {grown / MIB:+.2f} MiB with {events} events; "
            f"descriptors {descriptors[0]} to {descriptors[-1]} (most {max(descriptors)}), "
            f"{slope(self._since(1 / 2), 2) * 3600:+.1f} per hour (second half)"
        )

    @property
    def seconds(self) -> float:
        """How long it watched."""
        return self.samples[-1][0] - self.samples[0][0]

    @property
    def grown(self) -> tuple[int, int]:
        """Bytes from the first quarter of the second half to its last one, and the events delivered from the one to the other.

        Medians, because a single sample may be of a moment in which everybody asks at once.
        """
        late = self._since(1 / 2)
        quarter = max(1, len(late) // 4)
        first, last = (sorted(s[1] for s in some)[quarter // 2] for some in (late[:quarter], late[-quarter:]))
        counts = self._counts[-len(late) :]
        return last - first, counts[-1 - quarter // 2] - counts[quarter // 2]

    def check(self) -> None:
        """AssertionError if the memory has grown by more than the noise of one soak."""
        grown, events = self.grown
        if self.seconds >= LEAST:
            assert grown <= ROOM + events * ROOM_PER_EVENT, str(self)

    def _since(self, part: float) -> list[tuple[float, int, int]]:
        return self.samples[int(len(self.samples) * part) :]

    def _look(self) -> None:
        while not self._over.wait(1.0):
            with self._process.oneshot():
                self.samples.append((time.monotonic(), self._process.memory_info().rss, self._process.num_fds()))
            self._counts.append(self.delivered())


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
        watch: Watch | None = None
        world = World(central, proxy, home, CONVERSATIONS, SEED)
        world.run(SECONDS * WARM if IS_SOAK else SECONDS, FAULTS)
        if IS_SOAK:
            world.live(5.0)
            with Watch(home.daemon_pid(), world.delivered) as watch:
                world.run(SECONDS * (1 - WARM), AROUND_THE_DAEMON)
            with capsys.disabled():
                print(f"\n{watch}")
        world.settle()
        print(world)
        world.leave()
    if watch is not None:
        watch.check()
