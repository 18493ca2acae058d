"""The one file and entry that a command means: read, understood, and writable or not."""

from dataclasses import dataclass
from typing import Any

from pursersctl import hosts_edit, hosts_entry, hosts_files, hosts_jsonc, hosts_places
from pursersctl.hosts_edit import Edit
from pursersctl.hosts_files import ConfigFile, Unusable
from pursersctl.hosts_known import Extra, Known, Path
from pursersctl.hosts_places import Machine, Place
from pursersctl.hosts_report import Scope
from pursersctl.hosts_text import Broken, TooClever


@dataclass(frozen=True, slots=True)
class Target:
    """A file of a host that was read, and where in it the servers of a scope stand."""

    known: Known
    place: Place
    file: ConfigFile
    data: Any

    @property
    def servers(self) -> dict[str, Any]:
        """The entries by name."""
        found = hosts_edit.at(self.data, self.place.container)
        return found if isinstance(found, dict) else {}

    def keys(self, name: str) -> Path:
        """Where an entry stands in the file."""
        return (*self.place.container, name)

    def ours(self) -> dict[str, hosts_entry.Entry]:
        """The entries that start the shim or the bridge."""
        entries = {name: hosts_entry.read(self.known, raw) for name, raw in self.servers.items()}
        return {name: entry for name, entry in entries.items() if entry.kind in ("shim", "bridge")}

    def changed(self, edits: list[Edit], by_hand: str) -> str:
        """The text after the edits. Raises Unusable, which tells what to do by hand, where we cannot make them."""
        try:
            return hosts_edit.changed(self.known.format, self.file.text, edits)
        except (Broken, TooClever) as error:
            raise Unusable(f"{self.place.path}: {error}.", by_hand, code="too_clever") from None


def read(known: Known, place: Place) -> Target:
    """A file and what is in it. Raises Unusable for one that is not what the host should be able to read."""
    file = hosts_files.read(place.path)
    try:
        data = hosts_edit.load(known.format, file.text)
    except (Broken, TooClever) as error:
        code = "broken" if isinstance(error, Broken) else "too_clever"
        raise Unusable(
            f"{place.path} is not understood: {error}.", f"Repair it; {known.title} has to read it, too.", code=code
        ) from None
    if extra := _refused(known, file):
        text = f"{place.path} has a {extra}, which {known.title} does not read."
        raise Unusable(text, "Take it out, then try again.", code="broken")
    if not isinstance(data, dict):
        raise Unusable(f"{place.path} holds no object.", "Move it away, then try again.", code="broken")
    servers = hosts_edit.at(data, place.container)
    if servers is not None and not isinstance(servers, dict):
        text = f"{place.path}: {'.'.join(place.container)} is no object, or in a form that is not understood."
        raise Unusable(text, "Change it by hand; docs/hosts.md shows how the entry looks.", code="too_clever")
    return Target(known, place, file, data)


def _refused(known: Known, file: ConfigFile) -> Extra | None:
    """What the host does not read in this file. Claude Code puts a new file in the place of such a one."""
    if not known.refuses:
        return None
    found = hosts_jsonc.extras(file.text) | ({"byte order mark"} if file.mark else set())
    return next((extra for extra in sorted(known.refuses) if extra in found), None)


def find(known: Known, machine: Machine, scope: Scope, name: str | None) -> Target:
    """The file to change in a scope that the host has: of several the one that has the entry, or any of ours, else the first.

    Raises Unusable as `read`.
    """
    candidates = [place for place in hosts_places.places(known, machine) if place.scope == scope]
    targets = [read(known, place) for place in candidates]
    having = [target for target in targets if (name in target.servers if name else target.ours())]
    return (having or targets)[0]
