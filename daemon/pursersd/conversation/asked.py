"""Requests of the server to the host, such as a form for its user: under ids that were never used before.

The SDK numbers them from 1 on each link. An answer that a host gives to a question of an earlier link, or of an earlier
daemon, must not be taken for the answer to the newest one of the same number.
"""

import secrets

from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from pursersd.ids import RequestId

Answer = JSONRPCResponse | JSONRPCError


class Asked:
    """The unanswered ones of one link."""

    def __init__(self) -> None:
        self._prefix = f"pursers-{secrets.token_hex(8)}-"
        self._own: dict[RequestId | None, RequestId] = {}
        """The server's id, by the one that the host sees."""

    def __len__(self) -> int:
        return len(self._own)

    def ask(self, request: JSONRPCRequest) -> JSONRPCRequest:
        """The request for the host."""
        shown = self._shown(request.id)
        self._own[shown] = request.id
        return request.model_copy(update={"id": shown})

    def answered(self, answer: Answer) -> Answer | None:
        """The answer for the server. None: nobody waits for it."""
        own = self._own.pop(answer.id, None)
        return None if own is None else answer.model_copy(update={"id": own})

    def given_up(self, message: JSONRPCNotification) -> JSONRPCNotification:
        """A cancellation by the server, for the host: it wants no answer any more."""
        params = dict(message.params or {})
        shown = self._shown(params.get("requestId"))
        self._own.pop(shown, None)
        return message.model_copy(update={"params": params | {"requestId": shown}})

    def _shown(self, own: object) -> str:
        return f"{self._prefix}{own}"
