"""A disposable real Pursers Central on a free loopback port, all files in a private temporary folder (central.md §1).

Use it so:

    with Central() as central:
        central.create_board("alpha")
        token = central.worker("somebody", "alpha")
        ticket_id = central.create_ticket("alpha", "Say hello")
"""

import contextlib
import functools
import hashlib
import http.client
import json
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import jwt
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from rig import canary, processes
from rig.plain import PlainClient, ToolFailed
from rig.wait import until

__all__ = ["Central", "ToolFailed", "free_port", "ticket_fields"]

START_TIMEOUT = 60.0  # seconds until /healthz must answer
PORTS = range(12_000, 28_000)
"""Below those that systems lend to outgoing connections, which could take one before its Central is up, or while it is down."""

INIT_AND_RUN = """
import sys
from pursers_central.pursers_central_runtime import main
main(["init", *sys.argv[1:]])
main(["run", sys.argv[1]])
"""
"""Both in one process: nearly all that either takes is its imports."""

CLIENT_ID = "rig"
ADMIN_SEAT = "boss"

WORKER_SCOPE = "board:read board:write"
REVIEWER_SCOPE = "board:read board:review"


class Central:
    """One instance: `begin()` once, then `stop()`/`start()` as often as a test needs; `close()` removes everything.

    As a context manager it is started on entry and closed on exit. `settings` become environment variables of the
    server, such as CENTRAL_REAPER_INTERVAL_S="1".
    """

    def __init__(self, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"central-{processes.RUN}-"))
        self.instance = self.folder / "instance"
        self.log = self.folder / "central.log"
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.base}/mcp"
        self.issuer = f"{self.base}/quickstart"
        self.process: subprocess.Popen[bytes] | None = None
        self._settings = settings

    def __enter__(self) -> Self:
        try:
            self.begin()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin(self) -> None:
        """Write the instance's keys, tokens and profile, start the server, and return when it answers."""
        self._launch([sys.executable, "-c", INIT_AND_RUN, str(self.instance), "--port", str(self.port)])

    def start(self) -> None:
        """Start the server again and return when it answers."""
        self._launch(self._command("run", str(self.instance)))

    def _launch(self, command: list[str]) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                env=processes.environment(self._settings),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until(self._answers, START_TIMEOUT, "Central answers /healthz")

    def stop(self, *signals: int) -> None:
        """End the server: SIGTERM, then SIGINT (an open stream blocks SIGTERM, central.md §1.3), then SIGKILL."""
        if self.process is not None:
            processes.stop(self.process, signals or (signal.SIGTERM, signal.SIGINT), patience=3.0)

    def kill(self) -> None:
        """End the server as a crash would."""
        self.stop(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it and start it again at the same address with the same data."""
        self.stop()
        self.start()

    def maintain(self, command: str, *arguments: str) -> None:
        """Run a maintenance command of Central on this instance, such as rotate-key."""
        folder = self.instance / "data" if command == "fork-instance" else self.instance
        done = subprocess.run(
            self._command(command, str(folder), *arguments),
            env=processes.environment(),
            capture_output=True,
            text=True,
            timeout=START_TIMEOUT,
        )
        assert done.returncode == 0, done.stderr[-2000:]

    @property
    def jwks(self) -> Path:
        """The file of the keys that it accepts; read again at every request (central.md §1.4)."""
        return self.instance / "jwks.json"

    def close(self) -> None:
        """Stop it and remove its files."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def admin(self) -> str:
        """The token of the instance's owner; it belongs to no board and may found some."""
        return (self.instance / "admin.jwt").read_text().strip()

    def health(self) -> dict[str, Any]:
        """What /healthz says."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_TIMEOUT)
        try:
            connection.request("GET", "/healthz")
            found: dict[str, Any] = json.loads(connection.getresponse().read())
            return found
        finally:
            connection.close()

    def streams(self) -> int:
        """How many subscription streams are open."""
        return int(self.health()["active_subscription_streams"])

    def mint(self, subject: str, scope: str, board: str | None = None, lifetime: int = 3600, **claims: object) -> str:
        """A token signed by this instance. `board` confines it to one; a negative lifetime makes an expired one."""
        now = int(time.time())
        body: dict[str, object] = {
            **canary.CLAIM,
            "iss": self.issuer,
            "aud": self.url,
            "resource": self.url,
            "sub": subject,
            "client_id": CLIENT_ID,
            "scope": scope,
            "iat": now,
            "nbf": now - 5,
            "exp": now + lifetime,
            "jti": secrets.token_hex(8),
            **({} if board is None else {"pursers_board": board}),
            **claims,
        }
        # A rotated key signs admin.jwt anew, so its header names the key that is in force.
        kid = jwt.get_unverified_header(self.admin)["kid"]
        return jwt.encode(body, _key((self.instance / "signing-key.pem").read_bytes()), "RS256", headers={"kid": kid})

    def principal_id(self, subject: str, client_id: str = CLIENT_ID) -> str:
        """The principal that Central derives from a token of `mint(subject, …)` (central.md §5)."""
        triple = json.dumps([client_id, self.issuer, subject], separators=(",", ":"))
        return "PR-" + hashlib.sha256(triple.encode()).hexdigest()

    def call(self, token: str, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call one tool and return its structured result; ToolFailed for every kind of failure."""
        client = PlainClient(self.port, token)
        try:
            return client.tool(tool, **arguments)
        finally:
            client.close()

    def create_board(self, board: str, members: dict[str, str] | None = None) -> None:
        """Found a board and admit the subjects, each with its membership role (admin, member, reviewer)."""
        self.call(self.admin, "board_join", board_id=board, agent_name=ADMIN_SEAT, allow_takeover=True)
        for subject, role in (members or {}).items():
            self.admit(board, subject, role)

    def admit(self, board: str, subject: str, role: str = "member", client_id: str = CLIENT_ID) -> None:
        """Make the subject's principal a member of the board; nothing happens if it is one."""
        principal = self.principal_id(subject, client_id)
        try:
            self.call(
                self.admin, "board_member_add", board_id=board, agent_name=ADMIN_SEAT, principal_id=principal, role=role
            )
        except ToolFailed as refused:
            if "already a board member" not in refused.message:
                raise

    def worker(self, subject: str, board: str) -> str:
        """Admit the subject to the board and return a token confined to it that may work there."""
        self.admit(board, subject)
        return self.mint(subject, WORKER_SCOPE, board)

    def reviewer(self, subject: str, board: str) -> str:
        """Admit the subject to the board as a reviewer and return a token confined to it that may review there."""
        self.admit(board, subject, "reviewer")
        return self.mint(subject, REVIEWER_SCOPE, board)

    def create_ticket(self, board: str, title: str, **fields: Any) -> str:
        """Create an unassigned ticket, by the board's admin, and return its id."""
        given = {**ticket_fields(board), **fields}
        made = self.call(self.admin, "ticket_create", board_id=board, agent_name=ADMIN_SEAT, title=title, **given)
        return str(made["ticket"]["ticket_id"])

    def head(self, board: str) -> int:
        """The sequence number of the board's newest journal event."""
        boards = self.call(self.admin, "board_list")["boards"]
        return next(int(found["latest_seq"]) for found in boards if found["board_id"] == board)

    def board_count(self) -> int:
        """How many boards exist, also those that nobody may see: a request for an unused name can found one."""
        return int(self.health()["board_count"])

    def _answers(self) -> bool:
        if self.process is not None and self.process.poll() is not None:
            raise RuntimeError(f"Central ended at its start: {self.log.read_text(errors='replace')[-2000:]}")
        try:
            return bool(self.health()["status"] == "ok")
        except (OSError, ValueError, http.client.HTTPException):
            return False

    @staticmethod
    def _command(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "pursers_central", *arguments]


@functools.lru_cache
def _key(pem: bytes) -> Any:
    """A private key, understood; that takes twenty times as long as to sign with it."""
    return load_pem_private_key(pem, None)


def ticket_fields(board: str) -> dict[str, Any]:
    """What `ticket_create` wants besides a title when Central makes the id.

    With an id of ours and no assignee the ticket would be assigned to its creator (central.md §3.2).
    """
    return {
        "description": "Made by the test rig.",
        "scope": "READ-ONLY",
        "required_fields": ["summary"],
        "target_url": f"{board}/rig",
    }


def free_port() -> int:
    """A loopback port that nobody has at this moment."""
    while True:
        port = secrets.choice(PORTS)  # and not by a dice that hypothesis sets to the same in each process
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
