"""suspension: what counts as time without us. The clocks of the machine: test_clock."""

import pytest

from pursersd.clock import SleepWatch
from pursersd.suspension import LATE, TICK, Suspension


class Machine:
    """Its clocks, and how often it was noticed that it slept."""

    def __init__(self) -> None:
        self.awake, self.boot, self.wall = 500.0, 1000.0, 1.7e9
        self.woke = 0
        watch = SleepWatch(boot=lambda: self.boot, wall=lambda: self.wall, awake=lambda: self.awake)
        self.suspension = Suspension(self._woke, watch=watch, clock=lambda: self.awake)

    def _woke(self) -> None:
        self.woke += 1

    def after(self, awake: float, *, asleep: float = 0.0, wall: float = 0.0) -> bool:
        self.awake += awake
        self.boot += awake + asleep
        self.wall += awake + asleep + wall
        return self.suspension.look()


@pytest.mark.parametrize(
    ("moves", "noticed"),
    [
        ({"awake": TICK}, False),
        ({"awake": TICK + LATE - 1}, False),
        ({"awake": TICK + LATE + 1}, True),
        ({"awake": TICK, "asleep": 3600.0}, True),
        ({"awake": TICK, "wall": -7200.0}, False),
        ({"awake": TICK, "wall": 7200.0}, True),
    ],
    ids=["in time", "a busy machine", "SIGSTOP", "a sleep", "the clock is set back", "the clock is set forward"],
)
def test_what_is_noticed(moves: dict[str, float], noticed: bool) -> None:
    machine = Machine()
    assert machine.suspension.since_s is None
    assert machine.after(**moves) is noticed
    assert (machine.woke, machine.suspension.count) == (noticed, noticed)
    assert machine.after(TICK) is False  # it is told once
    assert machine.suspension.since_s == (TICK if noticed else None)
