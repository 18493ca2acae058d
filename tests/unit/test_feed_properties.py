"""The feed on a model of Central."""

import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unit.model_play import Play, invented, performed, shorter
from unit.virtual_time import run


def failure(play: Play) -> AssertionError | None:
    """What goes wrong in a play."""
    try:
        run(lambda: performed(play))
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if not isinstance(error, AssertionError):
            raise
        return error
    return None


@settings(
    max_examples=int(os.environ.get("EX", "300")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    report_multiple_bugs=False,
)
@given(st.integers(0, 2**32))
def test_everybody_is_told(number: int) -> None:
    if failure(invented(number)) is not None:
        play = shorter(invented(number), lambda play: failure(play) is not None)
        raise AssertionError(f"{failure(play)}\n{play}")
