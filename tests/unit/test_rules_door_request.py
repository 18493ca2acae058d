"""rules/door_request: which joins are not worth a question to anybody."""

import pytest

from pursersd.errors import DoorsError
from pursersd.rules.door import Door
from pursersd.rules.door_request import requested
from rig.doors import packed, token

COORDINATE = token(scope="board:read board:coordinate")


def check(text: str, name: str | None = None, role: str | None = None, *, allow_remote: bool = False) -> Door:
    return requested(text, name=name, role=role, allow_remote=allow_remote)


@pytest.mark.parametrize(
    ("text", "role", "expected"),
    [
        (packed(), None, "worker"),
        (packed(), "worker", "worker"),
        (packed(r="Reviewer"), "reviewer", "reviewer"),
        (packed(r="named"), None, "worker"),
        (packed(r="named", t=COORDINATE), None, "coordinator"),
        (packed(r="named", t=COORDINATE), "orchestrator", "orchestrator"),
        (packed(r="named"), "reviewer", "reviewer"),
    ],
)
def test_the_role_of_the_seat(text: str, role: str | None, expected: str) -> None:
    assert check(text, role=role).role == expected


def test_the_name_is_judged_first_as_by_the_bridge() -> None:
    with pytest.raises(DoorsError, match=r"^--name must be a safe 1-80 character identifier$"):
        check("no door", "-")
    with pytest.raises(DoorsError, match=r"^door must use the prs1"):
        check("no door", "me")


def test_the_url_is_judged_before_the_role() -> None:
    remote = packed("https://central.example/mcp")
    with pytest.raises(DoorsError, match=r"^remote door URL requires --allow-remote confirmation$"):
        check(remote, role="king")
    with pytest.raises(DoorsError, match=r"^--role must be worker, reviewer, coordinator, or orchestrator$"):
        check(remote, role="king", allow_remote=True)
    with pytest.raises(DoorsError, match=r"^--role is for named doors; this one is for the role worker$"):
        check(remote, role="reviewer", allow_remote=True)
