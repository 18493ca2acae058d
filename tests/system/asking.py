"""A board with a coordinator, and conversations that ask and answer: each role has a principal of its own."""

import json
from typing import Any

from pursersd.ids import agent_id
from pursersd.rules.host_binding import host_binding
from pursersd.secret import Secret
from rig import canary
from rig.central import ADMIN_SEAT, WORKER_SCOPE, Central
from rig.daemon import Home
from rig.shim import Pending, ShimProcess
from rig.speaker import Speaker
from system.scene import PATIENCE, Json

COORDINATOR_SCOPE = "board:read board:coordinate"
SCOPES = {
    "ann": WORKER_SCOPE,
    "rex": "board:read board:write board:review",
    "cora": COORDINATOR_SCOPE,
    "lea": COORDINATOR_SCOPE,
}
ROLES = {"ann": "worker", "rex": "reviewer", "cora": "coordinator", "lea": "orchestrator"}
WAIT_S = 60


class Company:
    """Conversations of one home by name; `cora` coordinates. Nothing of what binds her answers may show anywhere."""

    def __init__(self, central: Central, home: Home, board: str, url: str | None = None) -> None:
        self.central = central
        self.home = home
        self.board = board
        self.url = url or central.url
        self.tokens: dict[str, str] = {}
        for name, scope in SCOPES.items():
            # Principals like those of named doors, so that such a door may replace a token.
            central.admit(board, name, "reviewer" if name == "rex" else "member", client_id=name)
            self.tokens[name] = central.mint(name, scope, board, client_id=name)
        self.seat("cora")
        self.own("cora")

    def shim(self, name: str, agent: str | None = None, **environment: str) -> ShimProcess:
        """A conversation, past its handshake."""
        token = None if "ONBOARD_CENTRAL_TOKEN_FILE" in environment else self.tokens[name]
        place = self.home.environment(self.url, token, self.board, agent or name, ROLES[name], environment)
        shim = self.home.shim(place)
        shim.initialize()
        return shim

    def act(self, name: str, tool: str, /, agent: str | None = None, **arguments: Any) -> Json:
        """A call past the daemon."""
        token = self.central.admin if name == ADMIN_SEAT else self.tokens[name]
        return self.central.call(token, tool, board_id=self.board, agent_name=agent or name, **arguments)

    def seat(self, name: str, agent: str | None = None) -> None:
        """Take a seat past the daemon."""
        self.act(name, "board_join", agent, role=ROLES[name], allow_takeover=True)

    def own(self, name: str) -> None:
        """Register the coordinator of the board's project."""
        owner = agent_id(self.board, self.central.principal_id(name, name), name)
        canary.watch(host_binding(Secret(self.tokens[name]), owner))
        self.act(ADMIN_SEAT, "board_state_update", key="project_coordinators", value=json.dumps({self.board: [owner]}))

    def promote(self, name: str) -> None:
        """Make the board's admin of its member."""
        principal = self.central.principal_id(name, name)
        self.act(ADMIN_SEAT, "board_member_set_role", principal_id=principal, role="admin")

    def held(self, title: str, agent: str = "ann") -> str:
        """A ticket that a seat of ann's holds."""
        ticket = self.central.create_ticket(self.board, title)
        self.seat("ann", agent)
        self.act("ann", "ticket_claim", agent, ticket_id=ticket)
        return ticket

    def asked(self, ticket: str, message: str = "May I?", name: str = "ann") -> str:
        """Ask past the daemon; the question's id."""
        return str(
            self.act(name, "ticket_question_ask", ticket_id=ticket, message=message, kind="decision")["question_id"]
        )

    def questions(self, ticket: str) -> list[Json]:
        """The questions of a ticket, as its admin sees them."""
        found = self.central.call(self.central.admin, "ticket_get", board_id=self.board, ticket_id=ticket)
        return list(found["ticket"].get("coordinator_questions", []))

    def told(self, kind: str) -> list[Json]:
        """The events of a kind in the board's journal, as ann sees them."""
        everything = {"cursor": 0, "limit": 1000, "max_events": 1000, "touch": False, "ack": False}
        return [event for event in self.act("ann", "board_catchup", **everything)["events"] if event["kind"] == kind]


def ask(shim: Speaker, ticket: str, message: str = "May I?", **fields: str) -> Json:
    return shim.call_tool(
        "ticket_question_ask", {"ticket_id": ticket, "message": message, "kind": "decision", **fields}
    )


def answer(shim: Speaker, ticket: str, question: str, message: str) -> Json:
    given = {"ticket_id": ticket, "question_id": question, "message": message}
    return shim.call_tool("ticket_question_answer", given)


def await_answer(shim: Speaker, ticket: str, question: str, since_seq: int) -> Pending[Json]:
    asked = {"ticket_id": ticket, "question_id": question}
    return shim.start_tool("ticket_question_wait", {**asked, "since_seq": since_seq, "timeout_s": WAIT_S})


def await_question(shim: Speaker, since_seq: int) -> Pending[Json]:
    return shim.start_tool("board_question_wait", {"since_seq": since_seq, "timeout_s": WAIT_S})


def taken(wait: Pending[Json], timeout: float = PATIENCE) -> Json:
    """The result of a wait that must end with what it was for."""
    result = wait.result(timeout)
    assert (result["ok"], result["timed_out"], result["delivery"]) == (True, False, "protocol_delivered"), result
    assert result["model_continuation"] == "host_managed"
    return result
