"""central/served_time: whether something of Central's has expired is asked of Central's clock."""

from pursersd.central.served_time import ServedTime

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
EPOCH = 784111777.0


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_it_is_what_central_says_and_goes_on_as_we_do() -> None:
    uptime, wall = Clock(100.0), Clock(1.7e9)
    served = ServedTime(clock=uptime, wall=wall)
    assert (served.now(), served.ours_ahead_s) == (1.7e9, 0.0)
    served.told(DATE)
    uptime.now += 10
    assert served.now() == EPOCH + 10
    wall.now = EPOCH + 10 + 3600
    assert served.ours_ahead_s == 3600


def test_our_own_clock_may_be_set_meanwhile() -> None:
    uptime, wall = Clock(100.0), Clock(EPOCH)
    served = ServedTime(clock=uptime, wall=wall)
    served.told(DATE)
    for jump in (-86400, 86400 * 400):
        wall.now += jump
        assert served.now() == EPOCH


def test_since_when_ours_is_wrong_is_known_once_it_was_looked_at() -> None:
    uptime, wall = Clock(100.0), Clock(EPOCH)
    served = ServedTime(clock=uptime, wall=wall)
    served.told(DATE)
    assert served.wrong_for_s() == 0.0
    wall.now += 61
    assert served.wrong_for_s() == 0.0
    uptime.now, wall.now = uptime.now + 7, wall.now + 7
    assert served.wrong_for_s() == 7.0
    wall.now -= 61
    assert served.wrong_for_s() == 0.0
    uptime.now, wall.now = uptime.now + 7, wall.now - 3600
    assert served.wrong_for_s() == 0.0, "it begins anew"


def test_an_answer_without_a_date_changes_nothing() -> None:
    uptime = Clock(100.0)
    served = ServedTime(clock=uptime)
    served.told(DATE)
    for date in (None, "", "yesterday", "Sun, 99 Nov 1994 08:49:37 GMT"):
        served.told(date)
    assert served.now() == EPOCH
