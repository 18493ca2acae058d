"""Does Central answer? While it does not, one probe asks for everybody (design §4): streams and reads wait for it here."""

import logging
import random
import time
from collections.abc import Awaitable, Callable

import anyio

from pursersd.errors import CentralError, Overloaded, Unreachable
from pursersd.rules.backoff import delays

log = logging.getLogger(__name__)

FIRST_RETRY = 0.1
"""Seconds before the second probe; doubles with jitter."""

LAST_RETRY = 5.0
"""Longest pause between two probes, in seconds."""

LONGEST_HINT = 30.0
"""Seconds of Central's own Retry-After that are respected (contracts §8)."""

PATIENCE = 30.0
"""Seconds that a probe may take: after a sleep of the machine the network comes back later than we do."""


class Reach:
    """What is known of one Central's answering. Requests report to it, whoever would ask again waits with `back`."""

    def __init__(self, probe: Callable[[], Awaitable[object]], clock: Callable[[], float] = time.monotonic) -> None:
        self.losses = 0
        """How often Central stopped answering, or had to be doubted."""
        self._probe = probe
        self._clock = clock
        self._is_up = True
        self._is_silent = False
        self._answered_at = clock()
        self._changed = anyio.Event()
        self._asking = anyio.Lock()
        self._pauses = delays(FIRST_RETRY, LAST_RETRY, random.random)
        self._hint_s = 0.0

    def __repr__(self) -> str:
        return f"<Reach {'up' if self._is_up else 'down'}, {self.losses} losses>"

    @property
    def is_up(self) -> bool:
        """Whether nothing says that Central does not answer."""
        return self._is_up

    @property
    def is_silent(self) -> bool:
        """Whether the newest that is known is that nothing comes from it: whoever asks now may wait for long."""
        return self._is_silent

    @property
    def quiet_s(self) -> float:
        """Seconds since Central answered anything."""
        return self._clock() - self._answered_at

    def answered(self) -> None:
        """A request was answered."""
        self._answered_at = self._clock()
        self._is_silent = False
        if not self._is_up:
            self._is_up = True
            self._changed.set()

    def lost(self, error: CentralError) -> None:
        """A request was not answered, for this reason."""
        if not isinstance(error, (Unreachable, Overloaded)):
            return
        self._hint_s = min(error.retry_after_s or 0.0, LONGEST_HINT) if isinstance(error, Overloaded) else 0.0
        self.doubt()
        self._is_silent = isinstance(error, Unreachable) and error.silent

    def doubt(self) -> None:
        """It must answer once before anybody goes on, for all may have changed: the machine has slept."""
        self._is_silent = False
        if self._is_up:
            self._is_up = False
            self.losses += 1
            self._pauses = delays(FIRST_RETRY, LAST_RETRY, random.random)

    def hurry(self) -> None:
        """Somebody needs it now: cut a pause short, if it is not one that Central asked for."""
        if not self._hint_s:
            self._changed.set()

    async def back(self) -> None:
        """Return when Central answers: at once, unless it is known not to. One of all who wait here asks."""
        while not self._is_up:
            async with self._asking:
                if self._is_up:
                    return
                if not await self._ask():
                    await self._pause()

    async def _ask(self) -> bool:
        """Send the probe; whether Central answered it, or something else did meanwhile."""
        try:
            with anyio.fail_after(PATIENCE):
                await self._probe()
        except TimeoutError:
            log.debug("a probe was not answered in %.0f s", PATIENCE)
            self._is_silent = True
        except (Unreachable, Overloaded) as error:
            self.lost(error)
        except CentralError:
            self.answered()  # a refusal is an answer
        else:
            self.answered()
        return self._is_up

    async def _pause(self) -> None:
        self._changed = anyio.Event()
        with anyio.move_on_after(max(next(self._pauses), self._hint_s)):
            await self._changed.wait()
        self._hint_s = 0.0
