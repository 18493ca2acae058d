"""`make snapshot`: write the shim's early answers from the daemon's own (design: the early answer).

The daemon is asked over its link and not through a shim, which might give an early answer itself.
"""

import json
import sys
from pathlib import Path
from typing import Any

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from pursersd.rules import resend
from rig.daemon import Home
from rig.link import Link
from rig.speaker import LEGACY, modern_meta

Json = dict[str, Any]

SNAPSHOT = Path(__file__).parent.parent / "shim" / "pursers_shim" / "snapshot.json"


def main() -> int:
    """Returns 0 when the file is written."""
    with Home() as home:
        home.start_daemon()
        SNAPSHOT.write_text(rendered(current_answers(home)), encoding="utf-8")
    return 0


def current_answers(home: Home) -> Json:
    """What the running daemon of `home` answers to the openings of both eras, and what it says of calls whose outcome is
    unknown, in the snapshot's form."""
    environment = home.environment(role=None)
    versions = [version for version in HANDSHAKE_PROTOCOL_VERSIONS if _agreed(home, version) == version]
    with Link(home.place.socket, environment) as legacy:
        initialized = legacy.initialize(LEGACY)
        legacy_tools = legacy.request("tools/list")
    with Link(home.place.socket, environment) as modern:
        discovered = modern.request("server/discover", {"_meta": modern_meta()})
        modern_tools = modern.request("tools/list", {"_meta": modern_meta()})
    return {
        "initialize": initialized,
        "versions": versions,
        "server/discover": discovered,
        "tools/list": {"legacy": legacy_tools, "modern": modern_tools},
        "changing": {
            name: {"target": list(tool.target), "check": tool.check}
            for name, tool in resend.TOOLS.items()
            if not resend.read_only(name)
        },
    }


def rendered(answers: Json) -> str:
    """The file's text."""
    return json.dumps(answers, indent=1, ensure_ascii=False) + "\n"


def _agreed(home: Home, version: str) -> str:
    """The version that the daemon agrees to when a client asks for this one."""
    with Link(home.place.socket, home.environment(role=None)) as link:
        return str(link.initialize(version)["protocolVersion"])


if __name__ == "__main__":
    sys.exit(main())
