"""What a model does at Central through a connector of its own, with the credential and the name of its conversation."""

from typing import Any

from rig.central import ADMIN_SEAT, Central
from rig.wait import until
from system.scene import PATIENCE


class Model:
    """Claims, submits and reviews as one seat; `looks` reads as the board's admin, which changes nothing."""

    def __init__(self, central: Central, board: str, token: str, name: str) -> None:
        self.central = central
        self.board = board
        self.name = name
        self._token = token

    def do(self, tool: str, ticket: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool about a ticket."""
        return self.central.call(
            self._token, tool, board_id=self.board, agent_name=self.name, ticket_id=ticket, **arguments
        )

    def claim(self, ticket: str) -> None:
        """Claim it for work."""
        self.do("ticket_claim", ticket)

    def submit(self, ticket: str) -> None:
        """Hand it in."""
        self.do("ticket_submit", ticket, summary="done", files_changed=[], notes="none", test_output="none")


def set_ttl(central: Central, board: str, seconds: int) -> None:
    """Make the leases of a board as short as a test needs."""
    central.call(central.admin, "board_claim_ttl_set", board_id=board, agent_name=ADMIN_SEAT, claim_ttl_s=seconds)


def ticket(central: Central, board: str, ticket_id: str) -> dict[str, Any]:
    """The whole ticket, by a pure read."""
    found: dict[str, Any] = central.call(central.admin, "ticket_get", board_id=board, ticket_id=ticket_id, view="full")[
        "ticket"
    ]
    return found


def reap(central: Central, board: str) -> None:
    """Let Central notice expired leases: it does so only when somebody makes a call like this one (central.md §7)."""
    central.call(central.admin, "board_join", board_id=board, agent_name=ADMIN_SEAT, allow_takeover=True)


def renewals(central: Central, board: str, ticket_id: str, count: int, *, review: bool = False) -> list[dict[str, Any]]:
    """Watch a lease until it was renewed `count` times; returns it as it was after each. It must be held all the time."""
    found: list[dict[str, Any]] = []

    def renewed() -> bool:
        whole = ticket(central, board, ticket_id)
        assert whole["status"] == ("submitted" if review else "claimed"), whole["status"]
        lease = whole["review_lease"] if review else {k.removeprefix("lease_"): v for k, v in whole.items()}
        if not found or lease["renewed_at"] != found[-1]["renewed_at"]:
            found.append(lease)
        return len(found) > count

    until(renewed, PATIENCE + 10 * count, f"{count} renewals of {ticket_id}")
    return found[1:]
