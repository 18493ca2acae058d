"""`pursersctl ps`: one row per conversation, or per one that has ended."""

from pursers_shim.paths import Place
from pursersctl import client, output, render
from pursersd import api


def ps(place: Place, *, as_json: bool) -> None:
    """Print the conversations of the running daemon; change nothing."""
    result = client.ask(place, "ps")
    answer = client.read(result, api.Ps)
    if as_json:
        output.show_json(result)
    else:
        output.show(render.ps(answer, output.width()))


def ended(place: Place, *, as_json: bool) -> None:
    """Print the conversations that have ended, with the reason; change nothing."""
    result = client.ask(place, "ended")
    answer = client.read(result, api.Ended)
    if as_json:
        output.show_json(result)
    else:
        output.show(render.ended(answer, output.width()))
