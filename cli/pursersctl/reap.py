"""`pursersctl reap`: what is there for nobody, and its end if that is wanted."""

import time

from pursers_shim.paths import Place
from pursersctl import client, output, render
from pursersctl.errors import Failed
from pursersd import api

REAP_TIMEOUT = 3.0  # seconds until what was told to end must be gone
POLL_INTERVAL = 0.05  # seconds between two looks


def reap(place: Place, *, really: bool, as_json: bool) -> None:
    """List what has no host any more, and with `really` end it. Raises Failed if something of it stays."""
    result = client.ask(place, "reap", {"yes": really})
    answer = client.read(result, api.Reap)
    if as_json:
        output.show_json(result)
    else:
        output.show(render.reap(answer, output.width()))
    if really and answer.found:
        left = _left(place)
        if left:
            pids = ", ".join(str(row.shim_pid) for row in left)
            raise Failed(f"Still there after {REAP_TIMEOUT:.0f} s: shims {pids}. End them with: kill -KILL {pids}")


def _left(place: Place) -> list[api.ReapRow]:
    """What is still found when it should be gone."""
    deadline = time.monotonic() + REAP_TIMEOUT
    while (found := client.read(client.ask(place, "reap"), api.Reap).found) and time.monotonic() < deadline:
        time.sleep(POLL_INTERVAL)
    return found
