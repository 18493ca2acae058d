"""Lines that nobody should send: garbage, almost valid messages, and all of it cut at any byte (hypothesis)."""

import json
from typing import Any

from hypothesis import strategies as st

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
ODD_ID = st.one_of(
    st.integers(-2, 3), st.sampled_from(["1", "01", "", "é", "pursers/opening", 1.5, None, True, [], {}, 2**70])
)
METHODS = st.sampled_from(
    [
        "initialize",
        "ping",
        "server/discover",
        "tools/list",
        "tools/call",
        "resources/read",
        "resources/list",
        "prompts/get",
        "completion/complete",
        "logging/setLevel",
        "subscriptions/listen",
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/progress",
        "notifications/roots/list_changed",
        "pursers/delivered",
        "pursers/drain",
        "pursers/exit",
        "pursers/later",
        "",
        "no/such",
    ]
)
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
PARAMS = st.one_of(
    JSON,
    st.just({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}}),
    st.builds(lambda number: {"requestId": number, "reason": "fuzz"}, ODD_ID),
    st.builds(lambda number: {"id": number}, ODD_ID),
    st.builds(
        lambda name, arguments: {"name": name, "arguments": arguments},
        st.sampled_from(["a2a_wait", "project_registry_get", "nothing", "", 7]),
        st.one_of(JSON, st.fixed_dictionaries({}, optional={"timeout_s": JSON, "since_seq": JSON, "boards": JSON})),
    ),
    st.just({"_meta": META}),
)
MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "2.0", "2.0", "1.0", 2]),
        "id": ODD_ID,
        "method": METHODS,
        "params": PARAMS,
        "result": JSON,
        "error": JSON,
    },
)
ALMOST = st.builds(
    lambda number, method, params: {"jsonrpc": "2.0", "id": number, "method": method, "params": params},
    ODD_ID,
    METHODS,
    PARAMS,
)


def _encode(message: Any) -> bytes:
    return json.dumps(message).encode()


def _damage(line: bytes, at: int, piece: bytes) -> bytes:
    place = at % (len(line) + 1)
    return line[:place] + piece + line[place + len(piece) // 2 :]


FRAME = st.one_of(
    st.builds(_encode, ALMOST),
    st.builds(_encode, MESSAGE),
    st.builds(_damage, st.builds(_encode, ALMOST), st.integers(0, 400), st.binary(max_size=6)),
    st.builds(_encode, JSON),
    st.binary(max_size=40),
    st.builds(
        lambda character, count: character * count, st.sampled_from([b"[", b"x", b"\0", b'"']), st.integers(0, 70_000)
    ),
)
"""One line without its newline (though a damaged one may hold some)."""

PIECES = st.lists(st.integers(1, 5000), min_size=1, max_size=8)
"""Sizes of the pieces in which bytes are written, in turn."""


def cut(data: bytes, pieces: list[int]) -> list[bytes]:
    """The bytes in pieces of these sizes, in turn."""
    found, start, turn = [], 0, 0
    while start < len(data):
        found.append(data[start : start + pieces[turn % len(pieces)]])
        start += len(found[-1])
        turn += 1
    return found
