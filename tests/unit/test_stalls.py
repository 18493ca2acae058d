"""stalls: what keeps the loop to itself is seen, what only waits is not."""

import asyncio
import logging

import pytest

from pursersd.stalls import LONG, StallWatch


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def busy(clock: Clock, seconds: float) -> None:
    clock.now += seconds


async def idle(clock: Clock, seconds: float) -> None:
    """Others run while this one waits: time passes inside the look of the loop."""
    await asyncio.sleep(0.001)
    clock.now += seconds / 2
    await asyncio.sleep(0.001)
    clock.now += seconds / 2


def run(clock: Clock, watch: StallWatch, *what: object) -> None:
    async def all_of_it() -> None:
        for one in what:
            await asyncio.sleep(0.001)
            await one  # type: ignore[misc]
            await asyncio.sleep(0.001)

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(watch)) as runner:
        runner.run(all_of_it())


def test_the_longest_one_is_known(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    watch = StallWatch(clock)
    run(clock, watch, busy(clock, 0.3), busy(clock, 0.7), busy(clock, 0.2), idle(clock, 1.0))
    assert watch.longest_s == pytest.approx(0.7)
    assert caplog.text == ""


def test_a_long_one_is_told_and_a_start_is_none(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    watch = StallWatch(clock)

    async def begin() -> None:
        clock.now += 30
        watch.begin()

    with caplog.at_level(logging.WARNING):
        run(clock, watch, begin())
        assert (watch.longest_s, caplog.text) == (0.0, "")
        watch = StallWatch(clock)
        run(clock, watch, busy(clock, LONG + 0.5))
    assert "the event loop stood still for 1.5 s" in caplog.text
