"""Accept connections, see who is there, and give each to its conversation or to control."""

import errno
import logging
import os
import socket
import sys
from collections.abc import Callable, Mapping

import anyio
from anyio.abc import SocketAttribute, SocketListener, SocketStream, TaskGroup
from mcp.server.lowlevel.server import Server

from pursers_shim import wire
from pursers_shim.dial import peer_uid
from pursers_shim.paths import HOME_VARIABLE
from pursersd import __version__, files
from pursersd.control import Control
from pursersd.conversation import hello as hellos
from pursersd.conversation.bounds import Limits
from pursersd.conversation.conversation import Conversation
from pursersd.conversation.hello import Hello, Refused
from pursersd.conversation.identity import behind, by_kernel, identify, parent_of
from pursersd.conversation.lineage import Lineage, as_kept, to_keep
from pursersd.conversation.link import Link
from pursersd.conversation.registry import Conversations
from pursersd.conversation.surroundings import Surroundings
from pursersd.descriptors import Descriptors
from pursersd.fence import Fence
from pursersd.log import concerning
from pursersd.rules.bridge_files import keys_path
from pursersd.rules.credential import ReadFile
from pursersd.settings import resolve
from pursersd.state.digests import DigestFiles
from pursersd.state.doors import Doors
from pursersd.state.keyring import Keyring
from pursersd.state.stats import StatsWriters

log = logging.getLogger(__name__)

ACCEPT_PAUSE = 0.5
"""Seconds until we try again to accept connections, when there was nothing left to accept them with."""

_LACK = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

_TOO_MANY = (
    "The daemon has too few file descriptors for another conversation. Close chats that nobody uses, or allow more "
    "(ulimit -n) and run: pursersctl restart"
)

FILE_LIMIT = 64 * 1024
"""Bytes that are read of a token file."""

Lines = list[bytes | wire.LineTooLong]

FindDoors = Callable[[Mapping[str, str], str], Doors]
"""The stored doors of a conversation, by the environment and the working folder of its shim."""


class Listener:
    """The socket side of the daemon; owns the links of all conversations."""

    def __init__(
        self,
        conversations: Conversations,
        control: Control,
        server: Server[Conversation],
        epoch: int,
        stats: StatsWriters,
        doors: FindDoors,
        digests: DigestFiles,
        descriptors: Descriptors,
        *,
        fence: Fence | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._conversations = conversations
        self._control = control
        self._server = server
        self._epoch = epoch
        self._stats = stats
        self._doors = doors
        self._digests = digests
        self._fence = fence
        self._limits = limits
        self._descriptors = descriptors
        self._links: dict[str, Link] = {}
        """The live link of each conversation that has one."""
        self._drains: str | None = None
        """The reason, while the daemon lets calls end before it leaves."""
        conversations.on_end = self._end_link

    async def serve(self, listener: SocketListener, tasks: TaskGroup) -> None:
        """Accept connections until cancelled; each is served as a task of `tasks`."""
        while True:
            try:
                await listener.serve(self._serve_connection, tasks)
            except anyio.BrokenResourceError as error:
                if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in _LACK:
                    raise
                # Who has connected waits in the queue of the socket; those that are here may give something back.
                self._descriptors.refused()
                log.error("no connection can be accepted: %s", error.__cause__.strerror)
                await anyio.sleep(ACCEPT_PAUSE)

    @property
    def is_busy(self) -> bool:
        """Whether a call that should end before we go is in progress on any link."""
        return any(link.is_busy for link in self._links.values())

    async def drain(self, reason: str, limit_s: float) -> None:
        """Take no new work from now on; returns when every link has nothing new on its way to us."""
        self._drains = reason
        async with anyio.create_task_group() as tasks:
            for link in list(self._links.values()):
                tasks.start_soon(link.drain, reason, limit_s)

    async def dismiss(self, reason: str) -> None:
        """End every link, saying why: the shims will look for the next daemon, or wait for one."""
        farewell = wire.notification(wire.DRAIN, {"reason": reason})
        async with anyio.create_task_group() as tasks:
            for link in list(self._links.values()):
                tasks.start_soon(link.close, farewell)

    async def _serve_connection(self, stream: SocketStream) -> None:
        if self._fence is not None:
            self._fence.holds()  # whoever starts a daemon probes our socket first: see at once whether we still are it
        async with stream:
            try:
                await self._welcome(stream)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream) as error:
                log.debug("a connection broke: %r", error)
            except Exception:  # whatever one connection brought about, the others go on
                log.exception("a connection failed")

    async def _welcome(self, stream: SocketStream) -> None:
        uid = peer_uid(stream.extra(SocketAttribute.raw_socket))
        if uid != os.getuid():
            log.warning("refused a connection of user %d", uid)
            return
        lines = wire.Lines()
        try:
            with anyio.fail_after(wire.HELLO_TIMEOUT):
                first, early = await _first_line(stream, lines)
            hello, version = hellos.parse(first)
            if hello.role == "control":
                await self._control.serve(stream, lines, early, self._greeting(version))
            else:
                await self._serve_shim(stream, lines, early, hello, version)
        except TimeoutError:
            log.info("a connection said no hello in %.0f s", wire.HELLO_TIMEOUT)
        except Refused as refused:
            log.warning("refused a link: %s", refused)
            await stream.send(refused.line())

    async def _serve_shim(
        self, stream: SocketStream, lines: wire.Lines, early: Lines, hello: Hello, version: int
    ) -> None:
        if self._drains == wire.STOP:
            raise Refused("stopping", "This pursersd is being stopped.", retryable=True)
        if self._drains is not None or not (self._fence is None or self._fence.holds()):
            raise Refused(wire.DRAINING, "This pursersd is leaving; another one follows.", retryable=True)
        if not self._descriptors.has_room():
            raise Refused("too_many", _TOO_MANY, retryable=True)
        lineage = _lineage(hello, _peer_pid(stream.extra(SocketAttribute.raw_socket)))
        conversation = self._conversations.open(lineage, self._surroundings(hello), hello.resume)
        conversation.kept = to_keep(lineage) | conversation.kept
        epoch = conversation.attach()
        link = Link(stream, lines, conversation, epoch, self._limits)
        earlier = self._links.get(conversation.id)
        self._links[conversation.id] = link
        if earlier is not None:
            earlier.replace(epoch)
        try:
            await link.greet(
                wire.encode(
                    {
                        **self._greeting(version),
                        "link_epoch": epoch,
                        "conversation": conversation.id,
                        "limits": {"line": wire.MAX_LINE},
                    }
                )
            )
            with concerning(conversation.id):
                await link.serve(self._server, early)
        finally:
            if self._links.get(conversation.id) is link:
                del self._links[conversation.id]
            self._conversations.detached(conversation, epoch)

    def _surroundings(self, hello: Hello) -> Surroundings:
        doors = self._doors(hello.env, hello.cwd)
        read_file = _reader(hello.cwd)
        return Surroundings(
            resolve=lambda: resolve(hello.env, read_file, doors.load),  # a partial would show the environment
            doors=doors,
            stats=self._stats.of(hello.env, hello.cwd),
            digests=lambda board: self._digests.of(hello.env, hello.cwd, board),
            keyring=Keyring(keys_path(hello.env, str(doors.folder), hello.cwd)),
        )

    def _greeting(self, version: int) -> dict[str, object]:
        return {wire.KIND: wire.WELCOME, "protocol": version, "version": __version__, "daemon_epoch": self._epoch}

    async def _end_link(self, conversation: Conversation) -> None:
        """Its conversation is over: tell the shim to end, in case it still runs (its host may be dead, its pipe held open)."""
        link = self._links.get(conversation.id)
        if link is not None:
            await link.close(wire.notification(wire.EXIT, {"reason": conversation.end_reason}))


def _lineage(hello: Hello, peer: int) -> Lineage:
    """Where the conversation of a hello comes from. Raises Refused for a shim that nobody could watch.

    A shim in a pid namespace below ours (a host that runs in a sandbox) is told by the kernel, `peer`, not by its words.
    """
    shim, ppid, parent_started = identify(hello.pid, hello.started), hello.ppid, hello.parent_started
    if shim is None and (shim := by_kernel(peer, hello.pid)) is not None:
        above = parent_of(shim)
        ppid, parent_started = (above.pid, above.started) if above is not None else (0, None)
    if shim is None and peer == 0:
        raise Refused(
            "bad_hello",
            "The shim of this link lives in another container, where no daemon of ours can see whether it lives. "
            f"Give that one a daemon of its own: set {HOME_VARIABLE} there.",
        )
    if shim is None:
        raise Refused("bad_hello", f"There is no process {hello.pid} that could be the shim of this link.")
    found = as_kept(hello.resume.kept, shim) if hello.resume else None
    host, wrappers = found or behind(ppid, parent_started)
    return Lineage(shim, host, hello.cwd, hello.version, wrappers)


def _peer_pid(link: socket.socket) -> int:
    """The process that connected, by the kernel; 0 if it has no pid here, -1 where the kernel does not say."""
    if sys.platform != "linux":
        return -1
    return int.from_bytes(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 4), sys.byteorder)


async def _first_line(stream: SocketStream, lines: wire.Lines) -> tuple[bytes, Lines]:
    """The hello, and what came in the same breath."""
    while True:
        got = lines.feed(await stream.receive(65536))
        if got:
            first = got[0]
            if isinstance(first, wire.LineTooLong):
                raise Refused("bad_hello", f"The first line of a link must be a hello: {first}")
            return first, got[1:]


def _reader(folder: str) -> ReadFile:
    """Reads what a shim's environment names; a relative path begins in the folder of that shim, not in ours."""

    def read(path: str) -> str:
        return files.read(os.path.join(folder, path), FILE_LIMIT).decode()

    return read
