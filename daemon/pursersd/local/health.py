"""Whether the Central of the local board answers at its port, and whether it is ours."""

import errno
import json
import socket
from pathlib import Path

import anyio

ANSWER_LIMIT = 256 * 1024
ANSWER_TIMEOUT = 5.0  # seconds


def is_free(port: int) -> bool:
    """Whether a server could listen at this loopback port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # as servers do: what a former one left is no obstacle
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True


async def answers(port: int, instance: Path) -> bool:
    """Whether the Central whose data lie in `instance` answers at this port."""
    try:
        identity = json.loads((instance / "data" / "central-instance.json").read_bytes())
        with anyio.fail_after(ANSWER_TIMEOUT):
            found = await _ask(port)
    except (OSError, TimeoutError, ValueError, anyio.BrokenResourceError):
        return False
    return bool(found["status"] == "ok" and found["instance_id"] == identity["instance_id"])


async def _ask(port: int) -> dict[str, object]:
    """What /healthz says (central.md §1.3). Raises ValueError if it is not what a Central says."""
    request = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(request.encode())
        answer = b""
        try:
            while len(answer) < ANSWER_LIMIT:
                answer += await stream.receive()
        except anyio.EndOfStream:
            head, _, body = answer.partition(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200 "):
                raise ValueError("not healthy") from None
            found = json.loads(body)
            if isinstance(found, dict) and {"status", "instance_id"} <= found.keys():
                return found
    raise ValueError("not Central's answer")
