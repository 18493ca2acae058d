"""Host request ids that the SDK would confuse: it takes "1", "01" and 1 for the same id, the protocol does not.

Only a request that collides with one in progress gets an id of our own; everybody else keeps what the host chose, because
modern subscriptions show it to the host.
"""

import itertools
from dataclasses import dataclass

from mcp_types import JSONRPCNotification

from pursersd.ids import RequestId


def _folded(request: RequestId) -> RequestId:
    """What the SDK compares: a string that is a number counts as that number."""
    try:
        return int(request)
    except ValueError:
        return request


@dataclass(slots=True)
class _Running:
    host: RequestId
    size: int
    is_cancelled: bool = False


class RequestIds:
    """Ids of the requests in progress on one link.

    A cancelled request stays in progress, and its id in use, until the server is done with it: an answer that was on its
    way when the cancellation came belongs to nobody, least of all to a later request of the same id.
    """

    def __init__(self) -> None:
        self._own: dict[RequestId, RequestId] = {}
        """The id that the server sees, by the host's."""
        self._running: dict[RequestId, _Running] = {}
        """By the id that the server sees."""
        self._used: set[RequestId] = set()
        self._numbers = itertools.count(1)
        self.size = 0
        """Bytes of the lines of all requests in progress."""

    def __len__(self) -> int:
        return len(self._running)

    def assign(self, host: RequestId, size: int = 0) -> RequestId:
        """The id under which the server gets the host's request, a line of `size` bytes."""
        own: RequestId = host
        while _folded(own) in self._used:
            own = f"pursers-{next(self._numbers)}"
        self._own[host] = own
        self._running[own] = _Running(host, size)
        self._used.add(_folded(own))
        self.size += size
        return own

    def release(self, own: RequestId) -> RequestId | None:
        """The server is done with a request: the host's id for its answer. None if the host wants none."""
        running = self._running.pop(own, None)
        if running is None:
            return None
        self._used.discard(_folded(own))
        self.size -= running.size
        if running.is_cancelled:
            return None
        if self._own.get(running.host) == own:  # else a later request of the same id, which goes on
            del self._own[running.host]
        return running.host

    def translate_cancel(self, message: JSONRPCNotification) -> JSONRPCNotification | None:
        """A cancellation that names the request by the server's id. From here on the request gets no answer.

        None when no such request is in progress: the server might take the id for another one's.
        """
        params = dict(message.params or {})
        host = params.get("requestId")
        if not isinstance(host, (str, int)) or isinstance(host, bool) or host not in self._own:
            return None
        params["requestId"] = own = self._own.pop(host)
        self._running[own].is_cancelled = True
        return message.model_copy(update={"params": params})
