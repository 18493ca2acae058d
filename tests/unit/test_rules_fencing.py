"""rules/fencing: when a daemon is the daemon no more."""

import pytest

from pursersd.rules.fencing import Lock, Standing, standing


@pytest.mark.parametrize(
    ("lock", "counted", "socket_is_ours", "expected"),
    [
        (Lock.HELD, 7, True, Standing.OURS),
        (Lock.HELD, 6, True, Standing.FORGOTTEN),
        (Lock.HELD, None, True, Standing.FORGOTTEN),
        (Lock.HELD, 8, True, Standing.SUPERSEDED),
        (Lock.HELD, 8, False, Standing.SUPERSEDED),
        (Lock.HELD, 7, False, Standing.UNREACHABLE),
        (Lock.BLOCKED, 7, True, Standing.BLOCKED),
        (Lock.BLOCKED, 7, False, Standing.BLOCKED),
        (Lock.BLOCKED, 8, True, Standing.SUPERSEDED),
        (Lock.TAKEN, 7, True, Standing.SUPERSEDED),
        (Lock.TAKEN, None, False, Standing.SUPERSEDED),
    ],
)
def test_standing(lock: Lock, counted: int | None, socket_is_ours: bool, expected: Standing) -> None:
    assert standing(lock, counted=counted, epoch=7, socket_is_ours=socket_is_ours) is expected
