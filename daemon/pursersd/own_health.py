"""What an operator should know of the daemon itself: its version, those of its shims, and how it came to be started."""

from collections.abc import Sequence

from pursersd.api import LocalStatus, SeatRow, Warning
from pursersd.installed import Installed


def of_installation(version: str, installed: Installed, uptime_s: float) -> list[Warning]:
    """That the package was replaced under this daemon."""
    if installed.version == version:
        return []
    found = f"Version {installed.version} is installed" if installed.version else "The installed package is gone"
    return [
        Warning(
            code="restart_needed",
            since_s=round(min(installed.age_s, uptime_s), 3),
            text=f"{found}; this daemon is still version {version}.",
            action="Run: pursersctl restart"
            if installed.version
            else "Install pursersd again, then: pursersctl restart",
        )
    ]


def of_shims(version: str, rows: Sequence[SeatRow]) -> list[Warning]:
    """That shims of another version than the daemon's are linked."""
    skewed = [row for row in rows if row.shim_version != version]
    if not skewed:
        return []
    versions = ", ".join(sorted({row.shim_version or "unknown" for row in skewed}))
    return [
        Warning(
            code="version_skew",
            since_s=max(row.age_s for row in skewed),
            text=f"{len(skewed)} of {len(rows)} shims run version {versions}, this daemon {version}. They work together.",
            action="pursersctl ps shows which; a new conversation of their host gets the installed version.",
        )
    ]


def of_starts(count: int, age_s: float, words: str) -> list[Warning]:
    """That the daemons before this one kept ending: `count` starts in a row, the last one `age_s` ago."""
    said = f" The one before this printed: {words}" if words else ""
    return [
        Warning(
            code="crash_loop",
            since_s=round(age_s, 3),
            text=f"This daemon is number {count} in a row; those before it ended by themselves.{said}",
            action="See why with: pursersctl logs",
        )
    ]


def of_configuration(problems: Sequence[str]) -> list[Warning]:
    """That something in the configuration file is not followed."""
    return [
        Warning(
            code="configuration_wrong",
            since_s=0.0,
            text=f"The configuration is not followed: {problem}",
            action="Correct it, then run: pursersctl reload",
        )
        for problem in problems
    ]


def of_local_board(local: LocalStatus) -> list[Warning]:
    """That the local board is wanted and not served."""
    if local.state != "failing":
        return []
    return [
        Warning(
            code="local_board_failing",
            since_s=local.last_error_s or 0.0,
            text=f"The local board is not served: {local.last_error}",
            action=f"It is tried again by itself; see {local.log}. Give it up with: pursersctl local down",
        )
    ]
