"""The first line of a link: who is there and what for (docs/protocol.md)."""

from typing import Literal

import msgspec

from pursers_shim import wire
from pursersd import __version__
from pursersd.errors import PursersError


class Pending(msgspec.Struct, frozen=True):
    """A request that the host still waits for, told by a shim that comes back."""

    id: str | int
    age_s: float = 0.0


class Resume(msgspec.Struct, frozen=True):
    """What a shim knows of its earlier link."""

    conversation: str
    daemon_epoch: int = 0
    link_epoch: int = 0
    pending: list[Pending] = []
    idle_s: float | None = 0.0
    """Seconds since the last sign of life of the model: None for never. Of a shim that does not say it was just now."""
    kept: dict[str, object] = {}
    """What the conversation had its shim remember."""


class Hello(msgspec.Struct, frozen=True):
    """What a client says of itself. Fields that only a shim has are empty for pursersctl."""

    pursers: Literal["hello"]
    protocol: tuple[int, int]
    role: Literal["shim", "control"]
    version: str = ""
    pid: int = 0
    started: float | None = None
    ppid: int = 0
    parent_started: float | None = None
    cwd: str = ""
    env: dict[str, str] = {}
    resume: Resume | None = None

    def __repr__(self) -> str:
        return f"<Hello {self.role} {self.version} pid={self.pid}>"  # env may hold a credential


class Refused(PursersError):
    """The client cannot be served; `retryable` says whether coming again can help."""

    def __init__(self, code: str, text: str, *, retryable: bool = False) -> None:
        super().__init__(text)
        self.code = code
        self.retryable = retryable

    def line(self) -> bytes:
        """The answer that says so."""
        return wire.encode({wire.KIND: wire.REFUSE, "code": self.code, "text": str(self), "retryable": self.retryable})


def parse(line: bytes) -> tuple[Hello, int]:
    """The hello and the protocol version to speak. Raises Refused for anything else."""
    try:
        hello = msgspec.json.decode(line, type=Hello)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused("bad_hello", f"The first line of a link must be a hello: {error}") from error
    version = wire.agreed_protocol(hello.protocol)
    if version is None:
        raise Refused("protocol", _mismatch(hello))
    return hello, version


def _mismatch(hello: Hello) -> str:
    """Which of the two is too old, and what to do about it."""
    them = "shim" if hello.role == "shim" else "pursersctl"
    theirs, ours = (f"{oldest} to {newest}" for oldest, newest in (hello.protocol, wire.PROTOCOL))
    facts = f"it speaks link protocol {theirs}, pursersd {__version__} speaks {ours}"
    if hello.protocol[1] >= wire.PROTOCOL[0]:
        return (
            f"This pursersd is too old for the {them} {hello.version}: {facts}. Update it, then run: pursersctl restart"
        )
    cure = (
        "Update it. A host keeps the shim that it has started: begin a new conversation there"
        if them == "shim"
        else "Update it"
    )
    return f"This {them} is too old: {facts}. {cure}."
