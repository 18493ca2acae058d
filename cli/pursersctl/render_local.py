"""What pursersctl shows of the local board: structs in, lines out."""

from pursersctl.render import DEFAULT_WIDTH, duration, fact, wrapped
from pursersctl.table import Line, clean
from pursersd import api

STYLES = {"running": "green", "starting": "yellow", "failing": "red"}


def up(answer: api.LocalBoard) -> list[Line]:
    """Where the board is, and the doors to it."""
    lines: list[Line] = [((f"The board {clean(str(answer.local.board))} is up: {answer.local.url}", ""),)]
    for door in answer.doors:
        news = "issued and joined" if door.is_new else "joined already"
        lines.append(((clean(f"  {door.role:9} door {news}, key {door.kid}"), ""),))
    return lines


def gone(answer: api.LocalGone) -> list[Line]:
    """What has become of the board."""
    if answer.local.state == "none" and not answer.removed and not answer.kept:
        return [(("There is no local board.", ""),)]
    lines: list[Line] = [(("No Central serves the local board any more.", ""),)]
    lines += [((clean(f"  deleted  {what}"), ""),) for what in answer.removed]
    lines += [((clean(f"  kept     {what} (not ours)"), ""),) for what in answer.kept]
    return lines


def status(answer: api.LocalStatus, width: int = DEFAULT_WIDTH) -> list[Line]:
    """The page of `pursersctl local status`, and a part of `pursersctl status`."""
    if answer.state == "none":
        return [(("There is no local board. Make one with: pursersctl local up", ""),)]
    head: list[Line] = [
        (
            ("Local board ", "bold"),
            (clean(answer.board or ""), "bold"),
            ("  ", ""),
            (answer.state, STYLES.get(answer.state, "")),
        )
    ]
    if answer.last_error:
        since = f", {duration(answer.last_error_s)} ago" if answer.last_error_s is not None else ""
        again = f", next try in {duration(answer.next_try_s)}" if answer.next_try_s is not None else ""
        style = "yellow" if answer.state == "running" else "red"
        head += wrapped(f"last error{since}{again}: {answer.last_error}", width, indent=2, style=style)
    facts = [
        ("address", answer.url),
        ("pid", answer.pid),
        ("up", duration(answer.up_s) if answer.up_s is not None else None),
        ("restarts", answer.restarts if answer.state != "down" else None),
        ("folder", answer.folder),
        ("log", answer.log),
    ]
    return [*head, *(fact(name, str(value)) for name, value in facts if value is not None)]
