"""A wait goes on whenever its credential is replaced (RB-V2-003)."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from pursersd.errors import Forbidden, Unauthenticated
from pursersd.seats.seat import Source
from pursersd.waits.caller import Caller

log = logging.getLogger(__name__)

Result = TypeVar("Result")


async def whoever_we_are(
    caller: Caller, wait: Callable[[Caller, Source], Awaitable[Result]], *, resumed: bool
) -> Result:
    """What `wait` returns; begun again whenever the credential is replaced meanwhile.

    It must begin with the time that is left, and from its caller's cursor, which has not moved, so that nothing is lost and
    nothing told twice. Only a first attempt that was not `resumed` is a sign of the model.
    """
    source: Source = "keepalive" if resumed else "model"
    while True:
        key = caller.renewal.key
        with caller.renewal.until_renewed():
            try:
                return await wait(caller, source)
            except (Unauthenticated, Forbidden):
                if not caller.renewal.refused() and caller.renewal.key == key:
                    raise
        log.info("%s waits on with another credential", caller.id)
        caller = replace(caller, settings=caller.renewal.settings)
        source = "keepalive"
