"""A machine with hosts on it, in a scratch folder, for the tests of `pursersctl hosts`."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pursersctl import hosts_edit, hosts_places
from pursersctl.hosts_known import BY_NAME, Known
from pursersctl.hosts_places import Machine
from pursersctl.hosts_records import Records
from pursersctl.hosts_work import Wish

CORPUS = Path(__file__).parents[1] / "hosts_corpus"


class Desk:
    """A user's home, a project in it, and where our records lie."""

    def __init__(self, root: Path, *, mac: bool = False, environ: Mapping[str, str] | None = None) -> None:
        self.root = root
        self.home = root / "home"
        self.project = self.home / "proj"
        self.programs = root / "bin"
        for folder in (self.project, self.programs):
            folder.mkdir(parents=True, exist_ok=True)
        variables = {"PATH": str(self.programs), "HOME": str(self.home), **(environ or {})}
        self.machine = Machine(variables, self.home, self.project, mac, (root / "Applications",))
        self.records = Records(root / "state" / "hosts")

    def wish(self, host: str, **options: Any) -> Wish:
        """The arguments of a command for a host."""
        return Wish(known=BY_NAME[host], machine=self.machine, records=self.records, **options)

    def path(self, host: str, scope: str = "user") -> Path:
        """The file of a host."""
        places = hosts_places.places(BY_NAME[host], self.machine)
        return next(place.path for place in places if place.scope == scope)

    def write(self, host: str, data: bytes | str, *, suffix: str = "", scope: str = "user") -> Path:
        """Give a host a file."""
        path = self.path(host, scope)
        path = path.with_suffix(suffix) if suffix else path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def program(self, name: str, text: str = "#!/bin/sh\nexit 1\n") -> Path:
        """Put a program on the PATH."""
        path = self.programs / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def servers(self, host: str, path: Path | None = None) -> dict[str, Any]:
        """The entries in a host's file."""
        known: Known = BY_NAME[host]
        data = hosts_edit.load(known.format, (path or self.path(host)).read_text(encoding="utf-8-sig"))
        return hosts_edit.at(data, known.container) or {}

    def files(self) -> dict[str, bytes]:
        """Every file of the home, with what it holds."""
        found = {}
        for folder, _, names in os.walk(self.home):
            for name in names:
                path = Path(folder, name)
                found[str(path.relative_to(self.home))] = path.read_bytes()
        return found
