"""Whether a stdio server that nobody introduced to us still has its host: told from what the system shows of it now.

A shim names its host at its first statement. Of a bridge, and of a shim that no daemon knows, only the present is there:
who is above it, who reads what it writes, and its process group. That its parent is 1 proves nothing, nor does silence.
"""

from collections.abc import Iterator
from dataclasses import dataclass

ADOPTERS = frozenset(
    {"systemd", "init", "launchd", "tini", "dumb-init", "docker-init", "catatonit", "s6-svscan", "runsvdir", "conmon"}
)
"""Programs that become the parent of processes whose own has ended, and are nobody's host."""


@dataclass(frozen=True, slots=True)
class Process:
    """A living process."""

    pid: int
    started: float
    """In one measure for all processes of a scene."""
    group: int
    """Its process group: that of its parent, unless it was given one of its own."""
    name: str
    is_server: bool = False
    """A bridge, a shim or the daemon: it hosts nobody."""

    def __str__(self) -> str:
        return f"{self.name or 'a process'} (pid {self.pid})"


@dataclass(frozen=True, slots=True)
class Scene:
    """A server and who may have to do with it."""

    server: Process
    wrappers: tuple[Process, ...] = ()
    """Programs between it and `above` that are nobody's host (sh, uvx), the nearest first."""
    above: Process | None = None
    """The first process above them."""
    readers: tuple[Process, ...] | None = ()
    """Who holds the other ends of what it writes to; None where the system does not tell."""
    is_read_unseen: bool = False
    """Somebody reads its output whom we may not look at."""
    on_terminal: bool = False
    """Its output goes to a terminal."""
    by_runner: bool = False
    """Its environment says that a package runner (uvx, npx) started it, which may have ended before the host."""
    group: tuple[Process, ...] = ()
    """The other living processes of its group."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether its host lives; None when that cannot be told. Only False makes it an orphan."""

    host_lives: bool | None
    why: str
    host: Process | None = None


def verdict(scene: Scene) -> Verdict:
    """Whether the host of this server lives, as far as it can be told. In doubt it lives, or is not known.

    Its host is whoever started it, above all wrappers, and is gone only if nobody is left who can have been that.
    """
    above = scene.above
    if above is not None and not _adopts(above) and _may_have_started(above, scene):
        return Verdict(True, f"its host {above} lives", above)
    if scene.on_terminal:
        return Verdict(None, "its output goes to a terminal: somebody may sit there")
    if scene.readers is None:
        return _by_group(scene)
    for reader in scene.readers:
        if not reader.is_server and (reader == above or _may_have_started(reader, scene)):
            return Verdict(True, f"{reader} reads its output and may be its host", reader)
    if scene.is_read_unseen:
        return Verdict(None, "somebody reads its output whom this user may not look at")
    return Verdict(False, _ended(scene, "; ".join(_heard(scene))))


def _by_group(scene: Scene) -> Verdict:
    """Where nobody can say who reads its output: whoever started it was of its group, unless it leads one of its own."""
    if _is_anybodys(scene) or (scene.above is not None and not _adopts(scene.above)):
        return Verdict(None, "this system does not tell who reads its output")
    for member in scene.group:
        if not member.is_server and member not in scene.wrappers and _may_have_started(member, scene):
            return Verdict(None, f"{member} is of its process group and may be its host")
    return Verdict(False, _ended(scene, "nobody is left of its process group"))


def _may_have_started(process: Process, scene: Scene) -> bool:
    """Whether this process can have started the server, or the outermost wrapper that still stands before it."""
    server = _outermost(scene)
    return process.started <= server.started and (_is_anybodys(scene) or process.group == server.group)


def _is_anybodys(scene: Scene) -> bool:
    """Whether its group says nothing of who started it: it leads its own, or a runner between the two may have led it."""
    server = _outermost(scene)
    return server.group == server.pid or scene.by_runner


def _outermost(scene: Scene) -> Process:
    return scene.wrappers[-1] if scene.wrappers else scene.server


def _adopts(process: Process) -> bool:
    return process.pid == 1 or process.name in ADOPTERS or process.name.startswith("containerd-shim")


def _heard(scene: Scene) -> Iterator[str]:
    if not scene.readers:
        yield "nobody reads its output"
    for reader in scene.readers or ():
        yield f"{reader} holds its output but did not start it"


def _ended(scene: Scene, proof: str) -> str:
    adopted = f", adopted by {scene.above}" if scene.above is not None else ""
    return f"its host has ended{adopted}: {proof}"
