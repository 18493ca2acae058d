"""What changed between two looks at the daemon: leases, warnings, Centrals. Pure.

The rest (conversations, their states, wakes) is told when it happens, because two looks would miss what lies between.
"""

from collections.abc import Iterable

from pursersd.api import CentralStatus, LeaseRow, SeatRow
from pursersd.api.events import CentralChanged, Change, LeaseChanged, Snapshot, WarningChanged
from pursersd.health import changes

_LeaseKey = tuple[str, str, str, str]


def differences(before: Snapshot, now: Snapshot) -> list[Change]:
    """What is to be told to somebody who knows `before`, at the time of `now`."""
    begun, over = changes(before.warnings, now.warnings)
    return [
        *_centrals(before.centrals, now),
        *_leases(before.seats, now),
        *(WarningChanged(at=now.at, change="begun", warning=warning) for warning in begun),
        *(WarningChanged(at=now.at, change="over", warning=warning) for warning in over),
    ]


def _centrals(before: Iterable[CentralStatus], now: Snapshot) -> list[Change]:
    known = {(central.url, central.credential): central for central in before}
    found: list[Change] = []
    for central in now.centrals:
        earlier = known.pop((central.url, central.credential), None)
        if earlier is None or earlier.state != central.state:
            found.append(
                CentralChanged(
                    at=now.at,
                    url=central.url,
                    credential=central.credential,
                    state=central.state,
                    before=earlier.state if earlier else None,
                    detail=central.detail,
                )
            )
    for (url, credential), gone in known.items():
        found.append(
            CentralChanged(at=now.at, url=url, credential=credential, state="closed", before=gone.state, detail=None)
        )
    return found


def _leases(before: Iterable[SeatRow], now: Snapshot) -> list[Change]:
    known, present = _by_key(before), _by_key(now.seats)
    found: list[Change] = []
    for key, (row, lease) in present.items():
        if key not in known or known[key][1].state != lease.state:
            found.append(_lease(now.at, row, lease, over=False))
    for key, (row, lease) in known.items():
        if key not in present:
            found.append(_lease(now.at, row, lease, over=True))
    return found


def _by_key(rows: Iterable[SeatRow]) -> dict[_LeaseKey, tuple[SeatRow, LeaseRow]]:
    return {
        (row.conversation, lease.board, lease.ticket, lease.kind): (row, lease) for row in rows for lease in row.leases
    }


def _lease(at: str, row: SeatRow, lease: LeaseRow, *, over: bool) -> LeaseChanged:
    return LeaseChanged(
        at=at,
        conversation=row.conversation,
        seat=row.seat,
        board=lease.board,
        ticket=lease.ticket,
        kind=lease.kind,
        change="over" if over else lease.state,
        left_s=None if over else lease.left_s,
    )
