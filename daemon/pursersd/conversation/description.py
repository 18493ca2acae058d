"""A conversation for people: each setting and where it came from, secrets by their names only; what it holds."""

import json
from collections.abc import Iterable

from pursersd.api import LeaseRow, SeatStatus, Setting
from pursersd.central.pool import credential_name
from pursersd.feed.centrals import Central
from pursersd.rules.environment import Origin
from pursersd.seats.holder import Holder
from pursersd.secret import blanked
from pursersd.settings import Settings

Value = str | int | float | None


def leases_of(holder: Holder) -> list[LeaseRow]:
    """What it holds, as far as is known."""
    return [
        LeaseRow(
            board=lease.key.board,
            ticket=lease.key.ticket_id,
            kind=lease.key.kind,
            state="paused" if lease.is_paused else "kept",
            left_s=round(left_s, 3),
        )
        for lease, left_s in holder.leases()
    ]


def seats_of(conversation: str, centrals: Iterable[Central], home: str) -> list[SeatStatus]:
    """The seats that it has taken, the one of its home board first."""
    found = [
        SeatStatus(
            board=seat.board,
            agent_name=seat.agent_name,
            agent_id=seat.agent_id,
            principal_id=seat.principal_id,
            role=seat.role,
            claim_ttl_s=seat.claim_ttl_s,
            generation=seat.generation,
            shared_by=central.seats.users(seat),
            declared=central.seats.declares(seat, conversation),
        )
        for central in centrals
        for seat in central.seats.of(conversation)
    ]
    return sorted(found, key=lambda seat: (seat.board != home, seat.board))


def settings_of(settings: Settings, given_name: str | None) -> list[Setting]:
    """Every resolved value. `given_name` is the name that was found for it when it needed one, None before."""
    host = settings.host
    name = settings.origin("agent_name")
    if settings.agent_name is None:
        name = Origin("automatic")
    named = {
        "url": settings.url or None,
        "token": credential_name(settings.token) if settings.token is not None else None,
        "board": settings.board,
        "role": settings.role,
    }
    rest: dict[str, Value] = {
        "instance_id": settings.instance_id,
        "host": host.name,
        "timeout_s": host.timeout_s,
        "block_limit_s": host.block_limit_s,
        "wait_mode": settings.wait_mode,
        "boards_filter": settings.boards_filter,
        "capabilities": json.dumps(settings.capabilities, sort_keys=True) if settings.capabilities else None,
        "resurface_s": settings.resurface_s,
        "scan_interval_s": settings.scan_interval_s,
        "idle_limit_s": settings.idle_limit_s,
    }
    return [
        *(_setting(key, value, settings.origin(key)) for key, value in named.items()),
        _setting("agent_name", settings.agent_name or given_name, name),
        *(_setting(key, value, settings.origin("timeout_s" if key == "block_limit_s" else key)) for key, value in rest.items()),
    ]  # fmt: skip


def _setting(name: str, value: Value, origin: Origin) -> Setting:
    if isinstance(value, float):
        value = f"{value:g}"
    # A credential that got into another variable by mistake must not show either.
    shown = None if value is None else blanked(str(value))
    return Setting(name=name, value=shown, origin=origin.kind, origin_name=origin.name)
