"""rules/journals: is a place in this journal, or in another one?"""

import pytest

from pursersd.rules.journals import Journal, differ


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (None, ("CI-1", "g"), False),
        (("CI-1", None), ("CI-1", None), False),
        (("CI-1", None), ("CI-2", None), True),
        (("CI-1", None), (None, None), False),
        ((None, None), ("CI-2", None), False),
        (("CI-1", None), ("CI-1", "g"), False),  # not known before
        (("CI-1", "g"), ("CI-1", "h"), True),
        (("CI-1", "g"), (None, "h"), True),
        (("CI-1", "g"), ("CI-2", "g"), True),
    ],
)
def test_what_is_known_decides(before: Journal | None, now: Journal, expected: bool) -> None:
    assert differ(before, now) is expected
