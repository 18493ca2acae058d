"""The floor of a wake: one bare listener that fetches one page when it is cued. No client can need less."""

import threading
import time

from rig.central import Central
from rig.plain import PlainClient
from rig.proxy import Proxy

BOARD = "floor"
SEAT = "floor"
EVENTS = 9


def floor_ms(central: Central, proxy: Proxy, token: str) -> list[float]:
    """Samples of: a ticket is created → the cue arrived and the page behind it was read. Through the same proxy.

    The board must exist and nobody else may use it; the token's principal must be its member.
    """
    listening, calling = PlainClient(proxy.port, token), PlainClient(proxy.port, token)
    try:
        calling.tool("board_join", board_id=BOARD, agent_name=SEAT, allow_takeover=True)
        cues = listening.listen(f"board://{BOARD}/journal")
        cursor = central.head(BOARD)
        samples = []
        for number in range(EVENTS):
            creator = threading.Thread(target=central.create_ticket, args=(BOARD, f"floor {number}"))
            began = time.perf_counter()
            creator.start()
            next(cues)
            page = calling.tool("board_catchup", board_id=BOARD, agent_name=SEAT, cursor=cursor, touch=False)
            samples.append((time.perf_counter() - began) * 1e3)
            if not page["events"]:
                raise RuntimeError("the page behind a cue is empty")
            cursor = page["next_cursor"]
            creator.join()
        return samples
    finally:
        listening.close()
        calling.close()
