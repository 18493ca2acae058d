"""What an operator should know: a stable code, what it means, and what to do. A pure view of the daemon's state."""

from collections.abc import Sequence

from pursersd.api import CentralStatus, SeatRow, StatsFile, Warning


def warnings(
    centrals: Sequence[CentralStatus], rows: Sequence[SeatRow], stats: Sequence[StatsFile] = ()
) -> list[Warning]:
    """The warnings that the present state calls for, the most urgent first."""
    return [*_of_centrals(centrals), *_of_seats(rows), *_of_stats(stats)]


def _of_centrals(centrals: Sequence[CentralStatus]) -> list[Warning]:
    found = []
    for central in centrals:
        where = f"{central.url} ({central.credential})"
        if central.state == "refused":
            found.append(
                Warning(
                    code="credential_refused",
                    since_s=central.trouble_s or 0.0,
                    text=f"Central {where} does not accept the credential: {central.detail}",
                    action="Get a new token from the board's admin and set ONBOARD_CENTRAL_TOKEN or its file.",
                )
            )
        elif central.state == "unreachable":
            found.append(
                Warning(
                    code="central_unreachable",
                    since_s=central.trouble_s or 0.0,
                    text=f"Central {where} does not answer: {central.detail}",
                    action="Start Central or repair the way to it. Waits go on by themselves when it answers again.",
                )
            )
    return found


def _of_seats(rows: Sequence[SeatRow]) -> list[Warning]:
    return [*_polled(rows), *_shared(rows)]


def _polled(rows: Sequence[SeatRow]) -> list[Warning]:
    since: dict[tuple[str, str], float] = {}
    for row in rows:
        if row.delivery == "poll" and row.poll_reason != "PURSERS_WAIT_MODE=poll":
            key = (row.board or "", row.poll_reason or "")
            since[key] = max(since.get(key, 0.0), row.since_s)
    return [
        Warning(
            code="board_polled",
            since_s=since_s,
            text=f"Board {board} is polled instead of pushed: {reason}",
            action="Remove the cause; the next wait tries push again.",
        )
        for (board, reason), since_s in sorted(since.items())
    ]


def _shared(rows: Sequence[SeatRow]) -> list[Warning]:
    since: dict[tuple[str, str, int], float] = {}
    for row in rows:
        if row.shared_by > 1:
            key = (row.board or "", row.seat or "", row.shared_by)
            since[key] = min(since.get(key, row.age_s), row.age_s)
    return [
        Warning(
            code="seat_shared",
            since_s=since_s,
            text=f"{count} conversations use the seat {seat} on {board}: to Central they are one agent.",
            action="Give each its own ONBOARD_AGENT_INSTANCE if that is not meant.",
        )
        for (board, seat, count), since_s in sorted(since.items())
    ]


def _of_stats(files: Sequence[StatsFile]) -> list[Warning]:
    return [
        Warning(
            code="stats_unwritten",
            since_s=file.trouble_s or 0.0,
            text=f"The statistics cannot be written to {file.path}: {file.trouble}. They are kept in memory meanwhile.",
            action="Make room there and let the folder be yours; it is tried again by itself. "
            "PURSERS_BRIDGE_STATS in a host's configuration names another file.",
        )
        for file in files
        if file.trouble is not None
    ]
