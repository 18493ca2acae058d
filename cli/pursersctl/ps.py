"""`pursersctl ps`: one row per conversation, or per one that has ended."""

from typing import TypeVar

import msgspec

from pursers_shim.paths import Place
from pursersctl import client, live, output, render, render_ps
from pursersctl.errors import CommandError
from pursersctl.pick import Wish, pick
from pursersctl.table import Line
from pursersd import api

Listing = TypeVar("Listing", api.Ps, api.Ended)


def ps(place: Place, wish: Wish, *, as_json: bool, wide: bool) -> None:
    """Print the wanted conversations of the running daemon; change nothing."""
    result = client.ask(place, "ps")
    answer = client.read(result, api.Ps)
    if as_json:
        output.show_json(result if wish == Wish() else _picked(result, "seats", pick(answer.seats, wish)))
    else:
        output.show(_table(answer, wish, output.width(), wide=wide))


def watch(place: Place, wish: Wish, *, wide: bool, every_s: float) -> None:
    """Show them, again and again, until the user has seen enough. Raises Failed where that cannot be shown."""
    answer: api.Ps | CommandError = client.read(client.ask(place, "ps"), api.Ps)

    def draw(width: int, height: int) -> list[Line]:
        nonlocal answer
        try:
            answer = client.read(client.ask(place, "ps", timeout=live.PATIENCE), api.Ps)
        except CommandError as error:
            return [*render.wrapped(str(error), width, style="red"), (), (("It is looked for again.", ""),)]
        return _table(answer, wish, width, wide=wide, height=height)

    live.show(draw, every_s, "pursersctl ps --watch", "To a file or a program write: pursersctl events")


def ended(place: Place, wish: Wish, *, as_json: bool) -> None:
    """Print the wanted conversations that have ended, with the reason; change nothing."""
    result = client.ask(place, "ended")
    answer = client.read(result, api.Ended)
    places = pick(answer.ended, wish)
    if as_json:
        output.show_json(result if wish == Wish() else _picked(result, "ended", places))
    else:
        shown = msgspec.structs.replace(answer, ended=[answer.ended[i] for i in places])
        output.show(render.ended(shown, output.width(), of=len(answer.ended)))


def _table(answer: api.Ps, wish: Wish, width: int, *, wide: bool, height: int | None = None) -> list[Line]:
    shown = msgspec.structs.replace(answer, seats=[answer.seats[i] for i in pick(answer.seats, wish)])
    return render_ps.ps(shown, width, wide=wide, of=len(answer.seats), height=height)


def _picked(result: bytes, name: str, places: list[int]) -> bytes:
    """The daemon's document with only these rows, and with the fields that only a newer pursersctl knows."""
    document = msgspec.json.decode(result)
    document[name] = [document[name][i] for i in places]
    return msgspec.json.encode(document)
