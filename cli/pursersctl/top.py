"""`pursersctl top`: the daemon at work, drawn again and again."""

from pursers_shim.paths import Place
from pursersctl import client, live, render, render_top
from pursersctl.errors import CommandError
from pursersctl.table import Line
from pursersd import api


def top(place: Place, every_s: float) -> None:
    """Show the running daemon until the user has seen enough, also over its restarts; change nothing.

    Raises NotRunning if there is no daemon to begin with, Failed where there is no terminal.
    """
    known = _look(place, client.ANSWER_TIMEOUT)

    def draw(width: int, height: int) -> list[Line]:
        nonlocal known
        before = known
        try:
            known = _look(place, live.PATIENCE)
        except CommandError as error:
            return [*render.wrapped(str(error), width, style="red"), (), (("It is looked for again. q leaves", ""),)]
        return render_top.top(*known, render_top.rates(before, known), width, height)

    live.show(draw, every_s, "pursersctl top", "For a file or a program use: pursersctl status --json, or metrics")


def _look(place: Place, timeout: float) -> tuple[api.Status, api.Ps]:
    status = client.read(client.ask(place, "status", timeout=timeout), api.Status)
    return status, client.read(client.ask(place, "ps", timeout=timeout), api.Ps)
