"""Make a digest: bring what is known up to date, then say it (bridge.md §5.2)."""

import logging
from datetime import UTC, datetime
from typing import Any

from pursersd.conversation.conversation import Conversation
from pursersd.conversation.following import View
from pursersd.errors import CentralError
from pursersd.rules.digest import Sources, build, incomplete
from pursersd.rules.digest_arguments import Query
from pursersd.rules.windows import LW_DIGEST

log = logging.getLogger(__name__)


async def digest(conversation: Conversation, query: Query, *, is_shown: bool = True) -> dict[str, Any]:
    """The digest for this conversation's identity. Without Central it tells what is known, and that it is stale.

    With `is_shown` false the model does not get it. Raises StateError.
    """
    following = conversation.following
    view = await following.current()
    known = tuple(view.places) if view is not None else (conversation.settings.board,)
    boards = known if query.boards is None else query.boards
    record = await following.record()
    since = query.places(boards, record.cursors)
    if view is None:
        sources = Sources(trouble=str(following.trouble) if following.trouble else "Central has not answered yet.")
    else:
        sources = await _sources(view, since)
    found = build(query, boards, since, sources, record)
    gaps = incomplete(boards, since, sources)
    if gaps:
        conversation.windows.opened(LW_DIGEST, f"{conversation.id}: {', '.join(gaps)}", len(gaps))
    if is_shown:
        following.show(sources.cursors)
    return found


async def _sources(view: View, since: dict[str, int]) -> Sources:
    feed = view.central.digest
    places = {board: place for board, place in view.places.items() if board in since}
    trouble: str | None = None
    connected = await feed.caught_up(places.values())
    if not connected:
        troubles = [place.trouble for place in places.values() if place.trouble is not None]
        trouble = str(troubles[0] if troubles else feed.trouble or "Central has not told everything yet.")
    try:
        await feed.confirm(places.values())
        await feed.refresh(places)
    except CentralError as error:
        log.info("the tickets of a digest are as they were read earlier: %s", error)
        connected, trouble = False, str(error)
    read_at = max(
        (place.last_event_at for place in view.places.values() if place.last_event_at is not None), default=None
    )
    return Sources(
        events=feed.events(places, since),
        tickets=feed.seen_tickets(places),
        cursors={board: place.cursor for board, place in places.items()},
        missing={board: feed.missing(place, since[board]) for board, place in places.items()},
        connected=connected,
        trouble=trouble,
        last_event_at=None if read_at is None else datetime.fromtimestamp(read_at, UTC).isoformat(),
        reconnects=feed.reconnects,
    )
