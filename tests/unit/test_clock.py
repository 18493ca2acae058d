"""clock: what a sleep of the machine looks like, and what does not look like one."""

import pytest

from pursersd.clock import NOTICED, SleepWatch, boottime


class Clocks:
    """Boot, wall and awake clocks, each moved on its own."""

    def __init__(self) -> None:
        self.boot, self.wall, self.awake = 1000.0, 1.7e9, 500.0
        self.watch = SleepWatch(boot=lambda: self.boot, wall=lambda: self.wall, awake=lambda: self.awake)

    def pass_time(self, awake: float, *, asleep: float = 0.0, wall: float = 0.0) -> None:
        self.awake += awake
        self.boot += awake + asleep
        self.wall += awake + asleep + wall


@pytest.mark.parametrize(
    ("moves", "slept"),
    [
        ({"awake": 3600.0}, False),
        ({"awake": 1.0, "asleep": 60.0}, True),
        ({"awake": 1.0, "asleep": NOTICED / 2}, False),
        ({"awake": 1.0, "wall": 7200.0}, True),
        ({"awake": 1.0, "wall": -7200.0}, False),
    ],
    ids=["time goes on", "a sleep", "two clocks read one after the other", "set forward", "set back"],
)
def test_what_counts_as_a_sleep(moves: dict[str, float], slept: bool) -> None:
    clocks = Clocks()
    clocks.pass_time(**moves)
    assert clocks.watch.slept() is slept
    clocks.pass_time(10.0)
    assert clocks.watch.slept() is False, "it is told once"


def test_many_short_looks_do_not_hide_a_sleep() -> None:
    clocks = Clocks()
    seen = []
    for asleep in (0.0, 0.0, 30.0, 0.0):
        clocks.pass_time(0.1, asleep=asleep)
        seen.append(clocks.watch.slept())
    assert seen == [False, False, True, False]


def test_boottime_goes_on() -> None:
    first = boottime()
    assert boottime() >= first > 0
