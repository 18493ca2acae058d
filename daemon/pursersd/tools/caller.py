"""The conversation as a wait sees it."""

from collections.abc import Awaitable, Callable

from pursersd.conversation.conversation import Conversation
from pursersd.waits.caller import Caller


def caller_of(conversation: Conversation, progress: Callable[[float, float, str], Awaitable[None]]) -> Caller:
    """Who waits, with the settings of this moment; `progress` tells the host how long."""
    return Caller(
        id=conversation.id,
        settings=conversation.settings,
        renewal=conversation.configuration,
        memory=conversation.memory,
        denials=conversation.denials,
        connect=conversation.connect,
        seat_request=conversation.seat_request,
        watching=conversation.watching,
        progress=progress,
        holder=conversation.holder,
    )
