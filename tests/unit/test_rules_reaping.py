"""rules/reaping: what may be ended, and that nothing with a living host is."""

import pytest

from pursersd.rules.reaping import Subject, orphan

ANY = (True, False)


@pytest.mark.parametrize(
    ("has_ended", "is_detached", "shim_lives", "host_lives", "kind"),
    [
        (False, False, True, False, "shim"),
        (False, True, True, False, "shim"),
        (True, True, True, False, "shim"),
        (True, True, False, False, None),
        (True, True, True, None, None),
        (False, True, False, True, "conversation"),
        (False, True, False, False, "conversation"),
        (False, True, True, None, "conversation"),
        (False, False, True, None, None),
    ],
)
def test_orphan(
    has_ended: bool, is_detached: bool, shim_lives: bool, host_lives: bool | None, kind: str | None
) -> None:
    found = orphan(Subject(has_ended=has_ended, is_detached=is_detached, shim_lives=shim_lives, host_lives=host_lives))
    assert (found.kind if found else None) == kind


@pytest.mark.parametrize("has_ended", ANY)
@pytest.mark.parametrize("is_detached", ANY)
def test_a_living_shim_of_a_living_host_is_never_found(has_ended: bool, is_detached: bool) -> None:
    assert orphan(Subject(has_ended=has_ended, is_detached=is_detached, shim_lives=True, host_lives=True)) is None
