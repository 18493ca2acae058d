"""Keeping leases: what a ticket says of its holder, when to renew, when to pause, what to tell (bridge.md §3, RB-LSE-002).

A lease is data. Each thing that can happen to it is a function from one lease to the next one, or to None: forgotten.
Times are seconds on a clock that goes on while the machine sleeps; the caller gives them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from pursersd.rules.events import (
    CLAIM_TTL_CHANGED,
    FINISHED,
    LEASE_ENDED,
    kind_of,
    seq_of,
    text,
    ticket_of,
)

Kind = Literal["work", "review"]
Standing = Literal["held", "ended", "lost"]
Cue = dict[str, object]

DEFAULT_TTL_S = 900.0
SHARE = 0.4
"""Part of the TTL after which a lease is renewed."""

LONGEST = 300.0
"""A renewal is never later than this, in seconds (RB-LSE-002)."""

SHORTEST = 0.4
"""Seconds between two renewals at least, however short the TTL is (bridge.md §3)."""

JITTER = 0.15
"""By which part of the interval renewals are spread, to the early side."""

EARLY = 0.1
"""Part of the interval by which a lease may be renewed early, together with others."""

IDLE_TTLS = 3
"""After how many TTLs without a sign of life a conversation counts as idle, if nothing else is set."""

HELD_RETRY = 5.0
"""Longest time until a refused renewal of a lease that is still ours is tried again, in seconds."""

SILENT_RETRY = 30.0
"""The same for one that Central did not answer; at most a tenth of the TTL (contracts.md §8)."""

LOST = "lease is not held by this agent; lease was released or reassigned"
"""What a cue says when we saw it before Central could: it would renew the lease for its new holder (central.md §7)."""

WORKING = frozenset({"claimed", "in_progress", "creating_report"})
_WORK_ENDED = FINISHED | {"submitted", "needs_human"}
_OWN_RELEASES = frozenset({"explicit unclaim", "review rejected", "human input requested"})
_REVIEW_ENDED = FINISHED | {"open"}
_DROPS = FINISHED | {"open", "submitted"}


@dataclass(frozen=True, slots=True)
class LeaseKey:
    """One lease: another ticket, another kind or another agent is another lease."""

    board: str
    ticket_id: str
    kind: Kind
    agent_id: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A holder as Central tells it. `expires_at` is on Central's wall clock; what it did not say is None."""

    key: LeaseKey
    agent_name: str
    ttl_s: float | None = None
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease that is kept. `seen_seq` is the place in the journal at which it was certainly held; None if unknown."""

    key: LeaseKey
    agent_name: str
    ttl_s: float
    due: float
    """When to ask who holds it, and to renew it."""
    expires: float
    """When it lapses, as far as we know."""
    seen_seq: int | None = None
    is_paused: bool = False
    is_resumed: bool = False
    """It was paused and not renewed since: the caller knows that it may be lost."""
    has_failed: bool = False
    """The failure was told; it is not told again before a renewal succeeds."""


def claims(board: str, ticket: Mapping[str, object]) -> list[Claim]:
    """Who holds a ticket, for work and for review, by a ticket row with whole ids."""
    ticket_id, status = ticket_of(ticket), ticket.get("status")
    found: list[Claim] = []
    if ticket_id is None:
        return found
    holder = text(ticket.get("claimed_by_agent_id"))
    if status in WORKING and holder is not None:
        key = LeaseKey(board, ticket_id, "work", holder)
        name = text(ticket.get("claimed_by")) or ""
        found.append(Claim(key, name, number(ticket.get("ttl_s")), moment(ticket.get("lease_expires_at"))))
    review = ticket.get("review_lease")
    if status == "submitted" and isinstance(review, dict):
        reviewer = text(review.get("reviewer_agent_id"))
        if reviewer is not None:
            key = LeaseKey(board, ticket_id, "review", reviewer)
            name = text(review.get("reviewer_agent_name")) or ""
            found.append(Claim(key, name, number(review.get("ttl_s")), moment(review.get("expires_at"))))
    return found


def joined_claims(board: str, answer: Mapping[str, object]) -> list[Claim]:
    """What a seat holds by the answer to its join, which has just renewed all of it."""
    agent, name = text(answer.get("agent_id")), text(answer.get("agent_name"))
    rows = answer.get("renewed_leases")
    found = []
    for row in rows if isinstance(rows, list) else ():
        ticket_id = ticket_of(row) if isinstance(row, dict) else None
        if ticket_id is None or agent is None:
            continue
        kind: Kind = "review" if row.get("lease_kind") == "review" else "work"
        key = LeaseKey(board, ticket_id, kind, agent)
        found.append(Claim(key, name or "", number(row.get("ttl_s")), moment(row.get("lease_expires_at"))))
    return found


def standing(lease: Lease, ticket: Mapping[str, object] | None) -> Standing:
    """What a ticket, or its absence, says of a lease of ours (bridge.md §3, failure).

    `ended` is an end that its holder brought about or that finished the ticket: nobody needs to be told.
    """
    if ticket is None:
        return "ended"
    if any(claim.key == lease.key for claim in claims(lease.key.board, ticket)):
        return "held"
    status = ticket.get("status")
    if lease.key.kind == "review":
        unclaimed = status == "submitted" and not isinstance(ticket.get("review_lease"), dict)
        return "ended" if status in _REVIEW_ENDED or unclaimed else "lost"
    released = status == "open" and ticket.get("last_release_reason") in _OWN_RELEASES
    return "ended" if status in _WORK_ENDED or released else "lost"


def interval_s(ttl_s: float) -> float:
    """Seconds from one renewal to the next."""
    return max(SHORTEST, min(SHARE * ttl_s, LONGEST))


def idle_limit_s(ttl_s: float, setting: float | None) -> float:
    """How long a conversation may be silent until its lease is not renewed any more."""
    return setting if setting is not None else IDLE_TTLS * max(1.0, ttl_s)


def seen(
    claim: Claim, before: Lease | None, now: float, *, left_s: float | None, seq: int | None, jitter: float
) -> Lease:
    """The lease of a claim that was seen, `before` being what we knew of it.

    `left_s` is how much of it is left. Who does not know renews it at once: it may be as good as over. Somebody else may
    have renewed it meanwhile (a call of the model does); then it is due later.
    """
    ttl_s = claim.ttl_s or (before.ttl_s if before else DEFAULT_TTL_S)
    if left_s is None or left_s > ttl_s + 1:  # more than there can be: the clocks disagree
        due, expires = (before.due, before.expires) if before else (now, now + ttl_s)
    else:
        due, expires = now + max(0.0, _spread(ttl_s, jitter) - (ttl_s - left_s)), now + left_s
    known = before or Lease(claim.key, claim.agent_name, ttl_s, due, expires)
    newest = max((at for at in (known.seen_seq, seq) if at is not None), default=None)
    return replace(known, ttl_s=ttl_s, due=due, expires=expires, seen_seq=newest)


def is_due(lease: Lease, now: float) -> bool:
    """Whether it may be renewed now: it is due, or soon will be."""
    return lease.due <= now + EARLY * interval_s(lease.ttl_s)


def renewed(lease: Lease, now: float, ttl_s: float | None, jitter: float) -> Lease:
    """Central has renewed it just now, for `ttl_s` from now on."""
    ttl_s = ttl_s or lease.ttl_s
    due, expires = now + _spread(ttl_s, jitter), now + ttl_s
    return replace(lease, ttl_s=ttl_s, due=due, expires=expires, is_paused=False, is_resumed=False, has_failed=False)


def unanswered(lease: Lease, now: float, *, refused: bool = False) -> Lease:
    """Central did not answer: try again soon. Nothing is told, for nothing is known.

    With `refused` it does not take our credential: that does not change from one moment to the next.
    """
    pause = interval_s(lease.ttl_s) if refused else min(SILENT_RETRY, lease.ttl_s / 10)
    return replace(lease, due=now + max(SHORTEST, pause))


def not_renewed(lease: Lease, found: Standing | None, now: float, error: str) -> tuple[Lease | None, Cue | None]:
    """It could not be renewed, and `found` is how it stands, None if that cannot be told either.

    One that was paused before lapses without a word: the pause was told, and its end is in the journal.
    """
    if found == "ended" or (found != "held" and lease.is_resumed):
        return None, None
    cue = None if lease.has_failed else failed_cue(lease, error)
    if found == "held":
        return replace(lease, due=now + min(HELD_RETRY, interval_s(lease.ttl_s)), has_failed=True), cue
    return None, cue


def paused(lease: Lease) -> Lease:
    """Nobody works on it any more: it is left to lapse."""
    return replace(lease, is_paused=True)


def resumed(lease: Lease, now: float) -> Lease:
    """Somebody works again: ask at once whether it is still ours."""
    return replace(lease, is_paused=False, is_resumed=True, due=now)


def held(lease: Lease) -> Lease:
    """We asked, and it is ours, although there was no need to renew it."""
    return replace(lease, is_resumed=False)


def asked_now(lease: Lease, now: float) -> Lease:
    """Something may have happened to it: ask at once who holds it."""
    return replace(lease, due=min(lease.due, now))


def ttl_changed(lease: Lease, now: float, ttl_s: float) -> Lease:
    """The board's TTL is another one: from now on any renewal, also one that the model brings about, lasts as long."""
    return replace(lease, due=min(lease.due, now + interval_s(ttl_s)))


def after_event(lease: Lease, event: Mapping[str, object], now: float) -> Lease | None:
    """The lease after an event of the journal about its ticket (bridge.md §3, drop on event).

    An event may come from the history: if we have seen the lease held later than that, it is about an earlier one.
    """
    seq = seq_of(event)
    if not _drops(lease.key, event) or (seq is not None and lease.seen_seq is not None and seq <= lease.seen_seq):
        return lease
    return asked_now(lease, now) if seq is None or lease.seen_seq is None else None


def changed_ttl(event: Mapping[str, object]) -> float | None:
    """The board's new TTL, if the event tells of one."""
    return number(event.get("claim_ttl_to")) if kind_of(event) == CLAIM_TTL_CHANGED else None


def paused_cue(lease: Lease, limit_s: float) -> Cue:
    """What a conversation is told when its lease is not renewed any more, with the bridge's fields."""
    return _cue("lease_keepalive_paused", lease) | {
        "reason": "keepalive paused: model idle",
        "idle_limit_s": float(limit_s),
    }


def failed_cue(lease: Lease, error: str) -> Cue:
    """What a conversation is told when its lease could not be renewed, with the bridge's fields."""
    return _cue("lease_keepalive_failed", lease) | {"error": error}


def number(value: object) -> float | None:
    """`value` if it is a positive number."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and value > 0 else None  # type: ignore[arg-type,operator]


def moment(value: object) -> float | None:
    """Seconds since 1970 of a time as Central writes it; None for anything else."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found.timestamp() if found is not None and found.tzinfo is not None else None


def _spread(ttl_s: float, jitter: float) -> float:
    return interval_s(ttl_s) * (1 - JITTER * jitter)


def _drops(key: LeaseKey, event: Mapping[str, object]) -> bool:
    if ticket_of(event) != key.ticket_id:
        return False
    if kind_of(event) in LEASE_ENDED:
        return key.kind == "review" and event.get("reviewer_agent_id") in (None, key.agent_id)
    return event.get("status_to") in _DROPS


def _cue(kind: str, lease: Lease) -> Cue:
    key = lease.key
    return {
        "kind": kind,
        "source": "bridge_keepalive",
        "board_id": key.board,
        "ticket_id": key.ticket_id,
        "lease_kind": key.kind,
    }
