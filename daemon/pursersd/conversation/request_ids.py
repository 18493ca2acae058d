"""Host request ids that the SDK would confuse: it takes "1", "01" and 1 for the same id, the protocol does not.

Only a request that collides with one in progress gets an id of our own; everybody else keeps what the host chose, because
modern subscriptions show it to the host.
"""

import itertools

from mcp_types import JSONRPCNotification

RequestId = str | int


def _folded(request: RequestId) -> RequestId:
    """What the SDK compares: a string that is a number counts as that number."""
    try:
        return int(request)
    except ValueError:
        return request


class RequestIds:
    """Ids of the requests in progress on one link."""

    def __init__(self) -> None:
        self._own: dict[RequestId, RequestId] = {}
        """The id that the server sees, by the host's."""
        self._host: dict[RequestId, RequestId] = {}
        """The host's id, by the one that the server sees."""
        self._used: set[RequestId] = set()
        self._numbers = itertools.count(1)

    def assign(self, host: RequestId) -> RequestId:
        """The id under which the server gets the host's request."""
        own: RequestId = host
        while _folded(own) in self._used:
            own = f"pursers-{next(self._numbers)}"
        self._own[host] = own
        self._host[own] = host
        self._used.add(_folded(own))
        return own

    def release(self, own: RequestId) -> RequestId:
        """The host's id for the server's answer, which ends the request."""
        host = self._host.pop(own, own)
        if self._own.get(host) == own:  # else a later request of the same id, which goes on
            del self._own[host]
        self._used.discard(_folded(own))
        return host

    def translate_cancel(self, message: JSONRPCNotification) -> JSONRPCNotification | None:
        """A cancellation that names the request by the server's id. A cancelled request gets no answer: it ends here.

        None when no such request is in progress: the server might take the id for another one's.
        """
        params = dict(message.params or {})
        host = params.get("requestId")
        if not isinstance(host, (str, int)) or isinstance(host, bool) or host not in self._own:
            return None
        params["requestId"] = self._own[host]
        self.release(self._own[host])
        return message.model_copy(update={"params": params})
