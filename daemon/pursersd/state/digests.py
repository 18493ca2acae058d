"""What identities have acknowledged and watch, on disk: one file for each home board, beside the bridge's.

Everything here blocks: call it in a thread. A change is whole or has not happened, whoever changes the file meanwhile.
"""

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress

from pursersd import files
from pursersd.errors import StateError
from pursersd.rules import digest_file
from pursersd.rules.bridge_files import digest_path
from pursersd.rules.digest_file import Damaged, Newer
from pursersd.rules.digest_record import Changed, Record
from pursersd.state.lock import held

log = logging.getLogger(__name__)

LOCK_TIMEOUT = 5.0
"""Seconds that a change waits for another program to give the lock back."""

READ_LIMIT = 64 * 1024 * 1024
"""Bytes that are read. A bridge's file holds its 5,000 events and as many tickets."""

Change = Callable[[Record], Changed]


class DigestFile:
    """The records of one home board."""

    def __init__(self, bridge: str) -> None:
        """`bridge` is where a bridge keeps its own: it is read for a first record and never written."""
        self._bridge = bridge
        self.path = digest_file.own_name(bridge)

    def __repr__(self) -> str:
        return f"<DigestFile {self.path}>"

    def load(self, identity: str, agent_id: str) -> Record:
        """The record of an identity, the seat with this id. Raises StateError when the file cannot be used."""
        with suppress(Damaged):
            known = self._read().get(identity)
            if known is not None:
                return known
        try:  # what a bridge acknowledges later is not ours: it is asked once
            return self.change(identity, agent_id, lambda record: (record, {}))[0]
        except StateError as error:
            log.warning("%s", error)
            return self._taken_over(agent_id)

    def change(self, identity: str, agent_id: str, change: Change) -> Changed:
        """Change the record of an identity. Raises StateError, and then nothing has changed."""
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            with held(self.path + ".lock", LOCK_TIMEOUT):
                records = self._repaired()
                known = records.get(identity)
                after, result = change(known if known is not None else self._taken_over(agent_id))
                if after != known:
                    files.replace(self.path, digest_file.write({**records, identity: after}))
                return after, result
        except OSError as error:
            raise self._unusable(f"cannot be written: {error.strerror or error}") from error

    def _read(self) -> dict[str, Record]:
        """The records; none if there is no file. Raises Damaged, and StateError when it cannot be used."""
        try:
            text = _content(self.path)
            return digest_file.read(text) if text is not None else {}
        except Newer as error:
            raise self._unusable(f"was written by a newer version ({error})") from error
        except OSError as error:
            raise self._unusable(f"cannot be read: {error.strerror or error}") from error

    def _repaired(self) -> dict[str, Record]:
        try:
            return self._read()
        except Damaged as error:
            aside = files.move_aside(self.path)
            log.warning("%s is damaged (%s): a new one is begun, the old one is now %s", self.path, error, aside)
            return {}

    def _taken_over(self, agent_id: str) -> Record:
        """What the bridge's file gives for a first record; it stays as it is, whatever is in it."""
        try:
            text = _content(self._bridge)
            return digest_file.taken_over(text, agent_id) if text is not None else Record()
        except (OSError, Damaged, Newer) as error:
            log.warning("nothing is taken over from %s: %s", self._bridge, error)
            return Record()

    def _unusable(self, why: str) -> StateError:
        return StateError(
            f"{self.path} {why}. It holds what was acknowledged and is watched. Repair it, update pursersd, or move it away: "
            "then everything is shown again."
        )


class DigestFiles:
    """The files of all conversations. `home` is the folder of a private instance."""

    def __init__(self, home: str | None) -> None:
        self._home = home

    def of(self, environ: Mapping[str, str], cwd: str, board: str) -> DigestFile:
        """The file of a conversation with this environment in this folder, whose home board this is."""
        return DigestFile(digest_path(environ, self._home, board, cwd))


def _content(path: str) -> bytes | None:
    """What is in a file; None if there is none."""
    try:
        return files.read(path, READ_LIMIT)
    except FileNotFoundError:
        return None
