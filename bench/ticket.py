"""`make ticket CENTRAL=… TITLE=…`: create a ticket on the board of a Central that `make demo KEEP=1` left running."""

import argparse
import re
import sys
from pathlib import Path

from bench.cast import BOARD
from rig.central import ADMIN_SEAT, ticket_fields
from rig.plain import PlainClient


def main() -> int:
    """Prints the new ticket's id."""
    parser = argparse.ArgumentParser(prog="python -m bench.ticket", description=__doc__)
    parser.add_argument("central", type=Path, help="the folder that the demonstration named")
    parser.add_argument("title")
    options = parser.parse_args()
    instance = options.central / "instance"
    try:
        port = re.search(r"^ONBOARD_CENTRAL_PORT=(\d+)$", (instance / "profile.env").read_text(), re.MULTILINE)
        client = PlainClient(int(port[1]) if port else 0, (instance / "admin.jwt").read_text().strip())
        made = client.tool(
            "ticket_create", board_id=BOARD, agent_name=ADMIN_SEAT, title=options.title, **ticket_fields(BOARD)
        )
        client.close()
    except OSError as error:
        print(f"No Central of a kept demonstration in {options.central}: {error}", file=sys.stderr)
        return 1
    print(made["ticket"]["ticket_id"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
