"""A conversation that an earlier daemon knew: find what its seats hold before its model calls anything."""

import logging
import random

import anyio

from pursersd.conversation.conversation import Conversation
from pursersd.errors import Overloaded, PursersError, Unreachable
from pursersd.rules.backoff import delays

log = logging.getLogger(__name__)

PAUSES = (0.5, 30.0)
"""First and longest pause between attempts, in seconds."""


async def find_leases(conversation: Conversation) -> None:
    """Return when its seats are known, or when they cannot be: its next tool call finds them then."""
    for pause in delays(*PAUSES, random.random):
        try:
            central = await conversation.connect()
            await central.leases.adopt(conversation.holder, conversation.agent_name)
            return
        except (Unreachable, Overloaded) as error:
            log.info("%s: its leases are looked for again later: %s", conversation.id, error)
            await anyio.sleep(pause)
        except PursersError as error:
            log.info("%s: its leases cannot be looked for: %s", conversation.id, error)
            return
