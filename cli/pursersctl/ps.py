"""`pursersctl ps`: one row per conversation."""

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
