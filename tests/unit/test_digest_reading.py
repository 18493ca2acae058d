"""tools/digest_reading: what a digest says when something is missing, and what counts as shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pursersd.conversation.conversation import Conversation
from pursersd.errors import ConfigurationError, Unreachable
from pursersd.feed.place import Place
from pursersd.rules.digest_arguments import Query
from pursersd.rules.digest_record import Record
from pursersd.rules.windows import LW_DIGEST
from pursersd.tools.digest_reading import digest
from pursersd.windows import Windows
from unit.scripted_pool import seat

pytestmark = pytest.mark.anyio

ALL = Query(boards=None, since=None)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Feed:
    """What is known of board b, up to 9."""

    is_current: bool = True
    refusal: Unreachable | None = None
    dropped: int = 0
    trouble: Unreachable | None = None
    reconnects: int = 2

    async def caught_up(self, places: object) -> bool:
        return self.is_current

    async def confirm(self, places: object) -> None:
        """Nothing to find out."""

    async def refresh(self, boards: object) -> None:
        if self.refusal is not None:
            raise self.refusal

    def events(self, places: object, since: object) -> list[Any]:
        return []

    def seen_tickets(self, places: object) -> list[Any]:
        return []

    def missing(self, place: Place, since: int) -> int:
        return self.dropped


@dataclass
class Scene:
    """A conversation with such a feed; without one it follows nothing."""

    feed: Feed | None
    record: Record = field(default_factory=Record)
    trouble: ConfigurationError | None = None
    shown: dict[str, int] = field(default_factory=dict)
    windows: Windows = field(default_factory=Windows)
    place: Place = field(default_factory=lambda: Place(seat("ann"), 0.0, cursor=9, last_event_at=0.0))

    async def digest(self, query: Query = ALL, **given: bool) -> dict[str, Any]:
        return await digest(cast("Conversation", self), query, **given)

    # what it needs of a conversation
    id = "c-1"
    settings = SimpleNamespace(board="b")

    @property
    def following(self) -> Any:
        async def current() -> Any:
            return self.feed and SimpleNamespace(central=SimpleNamespace(digest=self.feed), places={"b": self.place})

        async def record() -> Record:
            return self.record

        def show(cursors: Mapping[str, int]) -> None:
            self.shown |= cursors

        return SimpleNamespace(current=current, record=record, show=show, trouble=self.trouble)

    def opened(self) -> int:
        return {window.name: window.count for window in self.windows.snapshot()}[LW_DIGEST]


async def test_what_was_read_is_shown_and_said_to_be_current() -> None:
    scene = Scene(Feed())
    found = await scene.digest()
    assert found["subscription"] == {
        "connected": True,
        "status": "current",
        "last_event_at": "1970-01-01T00:00:00+00:00",
        "reconnects": 2,
    }
    assert scene.shown == found["cursor_map"] == {"b": 9}


async def test_what_the_model_does_not_get_was_not_shown() -> None:
    scene = Scene(Feed())
    await scene.digest(is_shown=False)
    assert scene.shown == {}


@pytest.mark.parametrize(
    ("feed", "detail"),
    [
        (Feed(is_current=False, trouble=Unreachable("Central is away")), "Central is away"),
        (Feed(is_current=False), "Central has not told everything yet."),
        (Feed(refusal=Unreachable("Central went away")), "Central went away"),
    ],
)
async def test_what_could_not_be_read_makes_it_stale(feed: Feed, detail: str) -> None:
    found = await Scene(feed).digest()
    assert found["stale_reasons"] == ["subscription_disconnected"]
    assert found["subscription"]["detail"] == detail


async def test_without_central_it_is_empty_and_says_why() -> None:
    scene = Scene(None, trouble=ConfigurationError("no token"))
    found = await scene.digest()
    assert (found["cursor_map"], found["stale"], found["subscription"]["detail"]) == ({"b": 0}, True, "no token")
    assert scene.shown == {}


@pytest.mark.parametrize(("acknowledged", "count"), [(4, 1), (5, 0)])
async def test_a_digest_that_lacks_events_is_counted(acknowledged: int, count: int) -> None:
    scene = Scene(Feed(dropped=5), record=Record(cursors={"b": acknowledged}))
    found = await scene.digest()
    assert scene.opened() == count
    assert [warning["board_id"] for warning in found.get("warnings", [])] == ["b"] * count
