"""A pool: everything that goes to one Central with one credential.

Keyed by (URL, credential, expected instance), so a token never serves another pool's calls. Central serialises calls
(central.md §9.4), so more than a few connections buy nothing. Nobody, be it a conversation or the feed with its background
reads, holds more than two of the four, and whoever waits gets the next in turn: what a model asked for never queues behind
what others ask for.
"""

import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import jwt

from pursersd.central.client import Admit, CentralClient, Cues, freely
from pursersd.central.reach import Reach
from pursersd.central.turns import BACKGROUND, Turns, on_behalf_of
from pursersd.errors import (
    CentralError,
    Exhausted,
    Forbidden,
    InstanceMismatch,
    Overloaded,
    ToolFailed,
    Unauthenticated,
    UnknownBoard,
    Unreachable,
)
from pursersd.secret import Secret
from pursersd.windows import Windows

log = logging.getLogger(__name__)

CALLS = 4
"""Calls in flight at once."""

SHARE = 2
"""How many of them may be one conversation's, or the feed's reads and keepalive."""

SILENT_PATIENCE = 5.0
"""Seconds that a call waits for a Central that has fallen silent, before it fails without having been sent."""

CLOSE_PATIENCE = 5.0
"""Seconds that calls in flight have to end when the pool is closed."""

RESENDS = 2
"""How often a read is sent again after its connection broke."""

_NO_MEMBER = "board access denied"


@dataclass(frozen=True, slots=True)
class PoolKey:
    """What may share a connection: one origin, one credential, one expected instance."""

    url: str
    token: Secret
    instance_id: str | None


@dataclass(slots=True)
class Counters:
    """What a pool did since it was opened."""

    requests: int = 0
    cues: int = 0
    in_flight: int = 0
    by_tool: dict[str, int] = field(default_factory=dict)


class Pool:
    """Calls of one credential, bounded and counted; knows whether Central answers and which boards exist."""

    def __init__(
        self,
        key: PoolKey,
        admit: Admit = freely,
        windows: Windows | None = None,
        heads: dict[str, int] | None = None,
    ) -> None:
        self.key = key
        self.heads: dict[str, int] = heads if heads is not None else {}
        """Where each board's journal ended when it was read last, at this Central with any credential; for people only."""
        self.windows = windows or Windows()
        """Where it is counted when something may have been lost."""
        self.counters = Counters()
        self.last_error: CentralError | None = None
        """The error of the newest request; None when it was answered."""
        self.error_since = 0.0
        """When (monotonic) the newest requests began to go wrong; counts only with `last_error`."""
        self.on_connect_refused: Callable[[], None] = _nobody
        """Called when a connection could not be made: whoever holds streams must let go (central.md §1.3)."""
        self.reach = Reach(self.ask)
        """Whether Central answers; who would try again waits there."""
        self.instance: str | None = None
        """The Central that answered last, as far as it says; see `is_replaced`."""
        self.replaced_at: float | None = None
        """When (monotonic) it turned out to be another one than before."""
        self._expires = expiry(key.token)
        self._client = CentralClient(key.url, key.token, key.instance_id, admit)
        self._turns = Turns(CALLS, SHARE)
        self._boards: frozenset[str] = frozenset()
        self._asking = anyio.Lock()
        self._lists_asked = 0
        self._list_answered = 0
        """The list of boards that was answered last; one asked for since somebody came tells him of every board."""
        self._closing = False
        """No call begins any more; those that wait for their turn may still get it."""
        self._closed = False

    def __repr__(self) -> str:
        return f"<Pool {self.key.url} {self.credential} in flight {self.counters.in_flight}>"

    @property
    def credential(self) -> str:
        """The credential's name for people: its key id, else its fingerprint."""
        return credential_name(self.key.token)

    async def aclose(self) -> None:
        """Let calls in flight end, at most CLOSE_PATIENCE, and close the connections; later calls fail."""
        self._closing = True
        with anyio.move_on_after(CLOSE_PATIENCE):
            await self._turns.rest()
        self._closed = True
        await self._client.aclose()

    @property
    def central_time(self) -> float:
        """What time it is at Central, in seconds since 1970: whether something of Central's has expired is asked of it."""
        return self._client.served_time.now()

    @property
    def clock_ahead_s(self) -> float:
        """By how much our own clock is ahead of Central's; for people only."""
        return self._client.served_time.ours_ahead_s

    @property
    def clock_wrong_s(self) -> float:
        """For how long the two have been seen to differ by more than a minute; 0 while they do not."""
        return self._client.served_time.wrong_for_s()

    @property
    def expires_s(self) -> float | None:
        """Seconds until the credential expires, by Central's clock; None when it does not say."""
        return None if self._expires is None else self._expires - self.central_time

    async def doubt(self) -> None:
        """The machine has slept: trust no connection and take nothing for answered before Central answered once."""
        self.reach.doubt()
        await self._client.renew()

    async def ask(self) -> None:
        """Ask whether Central answers, and remember it like the answer to a call. Raises CentralError if it does not."""
        try:
            await self._client.ask()
        except CentralError as error:
            self._note(error)
            raise
        self._served()

    async def is_replaced(self) -> bool:
        """Whether another Central answers at this address than before: what we know of its journals is then of another."""
        found = await self._client.instance()
        if found is None:
            return False
        before, self.instance = self.instance, found
        if before in (None, found):
            return False
        log.warning("%s is another Central now: %s instead of %s", self.key.url, found, before)
        self.replaced_at = time.monotonic()
        self._boards = frozenset()
        return True

    @asynccontextmanager
    async def listen(self, uris: Iterable[str]) -> AsyncGenerator[Cues]:
        """Open a subscription stream (see CentralClient.listen)."""
        try:
            async with self._client.listen(uris) as cues:
                self._served()
                yield cues
        except InstanceMismatch as error:
            raise await self._explained(error) from error
        except CentralError as error:
            self._note(error)
            raise

    async def call(self, tool: str, arguments: Mapping[str, Any], *, generation: str | None = None) -> dict[str, Any]:
        """Send a call that must not be repeated by us: one attempt, errors as they are."""
        return await self._send(tool, arguments, generation, None)

    async def read(
        self, tool: str, arguments: Mapping[str, Any], *, generation: str | None = None, background: bool = False
    ) -> dict[str, Any]:
        """Send a call that changes nothing or may be repeated (central.md §8 class A); a broken connection is retried."""
        party = BACKGROUND if background else None
        for _ in range(RESENDS):
            try:
                return await self._send(tool, arguments, generation, party)
            except Unreachable as error:
                if not error.sent:
                    raise
                log.debug("resending %s: %s", tool, error)
        return await self._send(tool, arguments, generation, party)

    async def require_board(self, board: str) -> None:
        """Raise UnknownBoard unless the credential's principal is a member of `board`.

        Asking Central about any other board would found it (central.md §10, 3), so nobody may name it in a call.
        """
        if board in self._boards:
            return
        latest = self._lists_asked
        async with self._asking:
            if board not in self._boards and self._list_answered <= latest:
                await self._list_boards()
        if board not in self._boards:
            raise UnknownBoard(
                f"board {board!r} is not one of this credential's boards at {self.key.url}. Check its name "
                "(ONBOARD_BOARD_ID, or the argument boards), or ask its admin to create it and to admit this credential."
            )

    async def _list_boards(self) -> None:
        self._lists_asked += 1
        asked = self._lists_asked
        with on_behalf_of("boards"):  # others wait for this answer, who have their turns before the asker's next one
            listed = await self.read("board_list", {})
        self._boards = frozenset(str(b["board_id"]) for b in listed.get("boards", []))
        self._list_answered = asked

    def forget_board(self, board: str) -> None:
        """Ask Central again before the board is next used: a membership may have ended."""
        self._boards -= {board}

    async def _send(
        self, tool: str, arguments: Mapping[str, Any], generation: str | None, party: str | None
    ) -> dict[str, Any]:
        while not self._closing:
            await self._heard()
            async with self._turns.turn(party):
                if self._closed:  # its turn came too late
                    break
                if not self.reach.is_silent:  # it may have fallen silent meanwhile
                    return await self._ask(tool, arguments, generation)
        raise _replaced()

    async def _heard(self) -> None:
        """Return unless Central is silent: whoever asked it now would wait for all of SILENCE, one after the other, and keep
        the places of others meanwhile. One probe asks for all of them. Raises Unreachable after SILENT_PATIENCE."""
        if not self.reach.is_silent:
            return
        with anyio.move_on_after(SILENT_PATIENCE):
            await self.reach.back()
        if self.reach.is_silent:
            raise Unreachable(
                f"Central at {self.key.url} says nothing: it hangs, or the way to it is cut. Call again when "
                "`pursersctl status` says that it is ready.",
                sent=False,
                silent=True,
            )

    async def _ask(self, tool: str, arguments: Mapping[str, Any], generation: str | None) -> dict[str, Any]:
        self.counters.requests += 1
        self.counters.by_tool[tool] = self.counters.by_tool.get(tool, 0) + 1
        self.counters.in_flight += 1
        try:
            result = await self._client.call(tool, arguments, generation=generation)
            self._served()
            return result
        except InstanceMismatch as error:
            raise await self._explained(error) from error
        except CentralError as error:
            self._note(error)
            if isinstance(error, ToolFailed) and str(error).startswith(_NO_MEMBER):
                self.forget_board(str(arguments.get("board_id", "")))
            raise
        finally:
            self.counters.in_flight -= 1

    async def _explained(self, error: InstanceMismatch) -> InstanceMismatch:
        """Central's refusal, and who was expected and who answered: only a repair of the settings can help."""
        self.last_error = None
        found = await self._client.instance()
        answered = f"is {found}" if found else "is another one"
        return InstanceMismatch(
            f"{error}. Expected was {self.key.instance_id}, but the Central at {self.key.url} {answered}. "
            "Correct ONBOARD_CENTRAL_INSTANCE_ID or ONBOARD_CENTRAL_URL."
        )

    def _served(self) -> None:
        self.last_error = None
        self.reach.answered()

    def _note(self, error: CentralError) -> None:
        """Keep what says that Central does not serve us; every other failure is an answer."""
        if not isinstance(error, (Unreachable, Unauthenticated, Forbidden, Overloaded)):
            self._served()
            return
        if self.last_error is None:
            self.error_since = time.monotonic()
        self.last_error = error
        if isinstance(error, (Unauthenticated, Forbidden)):
            self.reach.answered()
        elif not isinstance(error, Exhausted):
            self.reach.lost(error)
        if isinstance(error, Unreachable) and not error.sent:
            self.on_connect_refused()


def _nobody() -> None:
    """Nobody to tell."""


def _replaced() -> CentralError:
    return CentralError("The credential of this call was replaced while it ran. Call again.", sent=False)


def credential_name(token: Secret) -> str:
    """Name a credential without showing it: the key id of its JWT header, else a short fingerprint."""
    try:
        kid = jwt.get_unverified_header(token.reveal()).get("kid")
    except jwt.PyJWTError:
        kid = None
    return f"{kid}/{token.fingerprint[:6]}" if isinstance(kid, str) and kid else token.fingerprint


def expiry(token: Secret) -> float | None:
    """When a credential says that it expires, in seconds since 1970; None if it is no JWT or has no `exp`."""
    try:
        expires = jwt.decode(token.reveal(), options={"verify_signature": False}).get("exp")
    except jwt.PyJWTError:
        return None
    return float(expires) if isinstance(expires, int | float) else None
