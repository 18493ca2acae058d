"""A board whose tickets ask humans, and hosts with a human: raw lines, what is asked is answered when the test says so."""

import os
import signal
from typing import Any, Generic, TypeVar

from rig.central import Central
from rig.daemon import Home
from rig.shim import ShimProcess
from rig.speaker import Pending, Speaker, modern_meta
from rig.wait import until
from system.scene import PATIENCE, Json

SCOPE = "board:read board:coordinate"
FIELDS = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
ONE, MANY = "board_human_request", "board_human_requests"

FORMS = {"elicitation": {"form": {}}}

YES = {"action": "accept", "content": {"colour": "red", "disposition": "reopen"}}
NO = {"action": "decline"}
LATER = {"action": "cancel"}

Shim = TypeVar("Shim", bound=Speaker)
"""The process, or the test itself (rig.link)."""


class LegacyHost(Generic[Shim]):
    """A conversation of the older era: the server asks over the link."""

    def __init__(self, shim: Shim) -> None:
        self.shim = shim
        self.shim.initialize(capabilities=FORMS)
        self._seen = 0

    def call(self, tool: str, **arguments: object) -> Pending[Json]:
        """Begin a call."""
        return self.shim.start_tool(tool, arguments)

    @property
    def is_asked(self) -> bool:
        """Whether there is a question that `question` has not returned yet."""
        return len(self._questions()) > self._seen

    def question(self) -> Json:
        """The next request of the server."""
        until(lambda: self.is_asked, PATIENCE, "the human is asked")
        self._seen += 1
        return self._questions()[self._seen - 1]

    def _questions(self) -> list[Json]:
        return [x for x in list(self.shim.received) if x.get("method") == "elicitation/create"]

    def respond(self, question: Json, said: Json) -> None:
        """The human's response."""
        self.shim.say({"jsonrpc": "2.0", "id": question["id"], "result": said})

    def taken_back(self) -> list[object]:
        """The ids of the questions that the server wants no answer to any more."""
        cancelled = [x for x in self.shim.notifications if x["method"] == "notifications/cancelled"]
        return [x["params"]["requestId"] for x in cancelled]


class ModernHost(Generic[Shim]):
    """A conversation of the newer era: questions are results, answers come with the next call."""

    def __init__(self, shim: Shim) -> None:
        self.shim = shim

    def call(self, tool: str, arguments: Json, capabilities: Json = FORMS, **more: Any) -> Pending[Json]:
        """Begin a call; `.result()` is the whole result."""
        params = {"name": tool, "arguments": arguments, "_meta": modern_meta(capabilities=capabilities), **more}
        return self.shim.start("tools/call", params)

    def asked(self, tool: str, arguments: Json, **more: Any) -> Json:
        """A call that asks; the result with its questions."""
        result = self.call(tool, arguments, **more).result(PATIENCE)
        assert result["resultType"] == "input_required", result
        return result

    def respond(self, tool: str, arguments: Json, question: Json, said: Json) -> Pending[Json]:
        """The same call with the human's response to every question of that result."""
        responses = dict.fromkeys(question["inputRequests"], said)
        return self.call(tool, arguments, inputResponses=responses, requestState=question["requestState"])


class Office:
    """A board whose tickets ask humans, and a coordinator's conversations that may answer."""

    def __init__(self, central: Central, home: Home, board: str, url: str) -> None:
        self.central = central
        self.home = home
        self.board = board
        central.admit(board, "cora")
        token = central.mint("cora", SCOPE, board)
        # The bridge has its state elsewhere than a private instance of ours.
        self.keys = home.folder / board / "request-state.keys"
        shared = {"PURSERS_REQUEST_STATE_KEY_FILE": str(self.keys)}
        self.environment = home.environment(url, token, board, "cora", role="coordinator", extra=shared)

    def legacy(self) -> LegacyHost[ShimProcess]:
        return LegacyHost(self.home.shim(self.environment))

    def modern(self) -> ModernHost[ShimProcess]:
        return ModernHost(self.home.shim(self.environment))

    def ask(self, message: str = "Which colour?", *, schema: Json | None = FIELDS, **more: str) -> Json:
        """A ticket asks; the arguments of the tool for this question."""
        ticket = self.central.create_ticket(self.board, "has a question")
        asked = {"message": message, "kind": "decision", **({} if schema is None else {"requested_schema": schema})}
        question = self.act("ticket_request_human", ticket, **asked, **more)
        return {"board_id": self.board, "ticket_id": ticket, "request_id": question["request_id"]}

    def act(self, tool: str, ticket: str, **arguments: Any) -> Json:
        place = {"board_id": self.board, "agent_name": "boss", "ticket_id": ticket}
        return self.central.call(self.central.admin, tool, **place, **arguments)

    def resolution(self, question: Json) -> Json | None:
        """What Central has of the answer."""
        call, ticket = self.central.call, question["ticket_id"]
        found = call(self.central.admin, "ticket_get", board_id=self.board, ticket_id=ticket, view="full")
        resolution: Json | None = found["ticket"]["human_request"]["resolution"]
        return resolution

    def answers(self) -> int:
        """How many answers Central's journal tells of."""
        call, me = self.central.call, {"board_id": self.board, "agent_name": "boss"}
        page = call(self.central.admin, "board_catchup", **me, cursor=0, limit=1000, touch=False, ack=False)
        return sum(event["kind"] == "human_input_resolved" for event in page["events"])

    def crash(self) -> None:
        os.kill(self.home.daemon_pid(), signal.SIGKILL)
