"""What binds a coordinator's answer to its credential (bridge.md §4.1, central.md §3.2)."""

import hashlib
import json

from pursersd.secret import Secret


def host_binding(token: Secret, agent_id: str) -> str:
    """The proof that an answer comes from this seat with this very credential; for Central alone."""
    pair = json.dumps([token.reveal(), agent_id], separators=(",", ":"))
    return hashlib.sha256(pair.encode()).hexdigest()
