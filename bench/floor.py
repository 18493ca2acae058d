"""The floor of a wake: one bare listener that fetches one page when it is cued. No client can need less."""

import threading
import time
from types import TracebackType
from typing import Self

from rig.central import Central
from rig.plain import PlainClient
from rig.proxy import Proxy

BOARD = "floor"
SEAT = "floor"


class Floor:
    """Takes samples on a board of its own, through a proxy of its own like the one that the conversations go through.

    BOARD must exist and the token's principal be its member.
    """

    def __init__(self, central: Central, token: str) -> None:
        self._central = central
        self._token = token
        self._proxy = Proxy(central.port)

    def __enter__(self) -> Self:
        self._proxy.__enter__()
        self._listening = PlainClient(self._proxy.port, self._token)
        self._calling = PlainClient(self._proxy.port, self._token)
        self._calling.tool("board_join", board_id=BOARD, agent_name=SEAT, allow_takeover=True)
        self._cues = self._listening.listen(f"board://{BOARD}/journal")
        self._cursor = self._central.head(BOARD)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        self._calling.close()
        self._proxy.__exit__(kind, error, trace)

    def sample_ms(self) -> float:
        """From the creation of a ticket until the cue has come and the page behind it is read."""
        # Idle connections are closed after 5 s (central.md §2.1); a client that waits for cues would keep one warm. Ours
        # may have been closed meanwhile, so begin a new one.
        self._calling.close()
        self._calling.tool("board_status", board_id=BOARD)
        creator = threading.Thread(target=self._central.create_ticket, args=(BOARD, "floor"))
        began = time.perf_counter()
        creator.start()
        next(self._cues)
        page = self._calling.tool("board_catchup", board_id=BOARD, agent_name=SEAT, cursor=self._cursor, touch=False)
        took = time.perf_counter() - began
        creator.join()
        if not page["events"]:
            raise RuntimeError("the page behind a cue is empty")
        self._cursor = page["next_cursor"]
        return took * 1e3
