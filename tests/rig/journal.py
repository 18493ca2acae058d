"""What cannot be asked of Central's tools: a board's journal grown by hundreds of rows at once, and a board that is fenced.

Both change Central's own SQLite file as another process may: each document has a version, which Central looks at before it
trusts what it has in memory.
"""

import hashlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

from rig import processes
from rig.central import START_TIMEOUT, Central

Document = dict[str, Any]


def grow(central: Central, board: str, count: int) -> int:
    """Append so many rows to the board's journal, nobody being a recipient, and return the number of the last one.

    They are copies of the newest row; nobody is cued of them.
    """

    def append(journal: Document) -> None:
        first = journal["next_seq"]
        newest = journal["rows"][-1]
        prefix = newest["id"].rpartition("-")[0]
        for seq in range(first, first + count):
            copy = {**newest, "id": f"{prefix}-{seq:020d}", "seq": seq, "recipient_identities": []}
            journal["rows"].append(copy)
        journal["next_seq"] = first + count

    return int(_change(central, f"journals/{_name(board)}", append)["next_seq"]) - 1


def fence(central: Central, board: str, token: str = "GEN-first") -> None:
    """Make it a board that was imported: every call that changes something must name its generation (central.md §6.5)."""
    fenced = {"generation_token": token, "generation_revision": 1}
    manifest = json.dumps({"board_id": board, "status": "complete", **fenced})
    with closing(_open(central)) as database, database:
        _apply(database, f"boards/{_name(board)}", lambda document: document.update(fenced))
        database.execute("INSERT INTO documents VALUES (?, ?, 1)", (f"imports/{_name(board)}.json", manifest))


def advance_generation(central: Central, board: str) -> None:
    """Give a fenced board another generation, with Central's own maintenance command."""
    with closing(_open(central)) as database:
        token = _load(database, f"boards/{_name(board)}")[0]["generation_token"]
    arguments = [
        *("--data-root", str(central.instance / "data")),
        *("--advance-generation", board),
        *("--expect-generation-sha256", hashlib.sha256(token.encode()).hexdigest()),
    ]
    done = subprocess.run(
        [sys.executable, "-c", "from pursers_central.central import main; main()", *arguments],
        env=processes.environment(),
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def number_anew(central: Central, board: str, token: str = "GEN-second") -> None:
    """The same without the second that the command takes."""
    following = {"generation_token": token, "generation_revision": 2}
    with closing(_open(central)) as database, database:
        for kind in ("boards", "imports"):
            _apply(database, f"{kind}/{_name(board)}", lambda document: document.update(following))


def _name(board: str) -> str:
    return hashlib.sha256(board.encode()).hexdigest()


def _open(central: Central) -> sqlite3.Connection:
    return sqlite3.connect(central.instance / "data" / "board.sqlite3", timeout=START_TIMEOUT)


def _change(central: Central, name: str, change: Callable[[Document], None]) -> Document:
    with closing(_open(central)) as database, database:
        return _apply(database, name, change)


def _apply(database: sqlite3.Connection, name: str, change: Callable[[Document], None]) -> Document:
    if not database.in_transaction:
        database.execute("BEGIN IMMEDIATE")
    document, version = _load(database, name)
    change(document)
    encoded = json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    database.execute("UPDATE documents SET doc = ?, version = ? WHERE path = ?", (encoded, version + 1, f"{name}.json"))
    return document


def _load(database: sqlite3.Connection, name: str) -> tuple[Document, int]:
    row = database.execute("SELECT doc, version FROM documents WHERE path = ?", (f"{name}.json",)).fetchone()
    assert row is not None, f"Central has no document {name}"
    return json.loads(row[0]), int(row[1])
