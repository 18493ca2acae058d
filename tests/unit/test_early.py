"""The shim's own answers: the opening from the snapshot, and why a call could not be carried out."""

import json
from pathlib import Path

import pytest

from pursers_shim.dial import Trouble
from pursers_shim.early import UNAVAILABLE, Early
from pursers_shim.message import MODERN_KEY, Request, read

SNAPSHOT = {
    "initialize": {"protocolVersion": "2025-11-25", "serverInfo": {"name": "t", "version": "1"}},
    "versions": ["2024-11-05", "2025-11-25"],
    "server/discover": {"supportedVersions": ["2026-07-28"], "resultType": "complete"},
    "tools/list": {"legacy": {"tools": ["old"]}, "modern": {"tools": ["new"], "resultType": "complete"}},
}
MODERN = {"_meta": {MODERN_KEY: "2026-07-28"}}


@pytest.fixture
def early(tmp_path: Path) -> Early:
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(SNAPSHOT))
    return Early(str(path))


def request(method: str, params: dict[str, object] | None = None) -> Request:
    line = {"jsonrpc": "2.0", "id": "i", "method": method} | ({} if params is None else {"params": params})
    message = read(json.dumps(line).encode())
    assert isinstance(message, Request)
    return message


def answer(early: Early, asked: Request, *, is_open: bool = True) -> object:
    line = early.answer(asked, is_open)
    if line is None:
        return None
    message = json.loads(line)
    assert message["id"] == "i"
    return message["result"]


@pytest.mark.parametrize(
    ("asked", "granted"),
    [("2024-11-05", "2024-11-05"), ("2025-11-25", "2025-11-25"), ("2030-01-01", "2025-11-25"), ("", "2025-11-25")],
)
def test_initialize_grants_the_version_it_knows_else_the_newest(early: Early, asked: str, granted: str) -> None:
    found = answer(early, request("initialize", {"protocolVersion": asked}), is_open=False)
    assert found == {"protocolVersion": granted, "serverInfo": {"name": "t", "version": "1"}}


@pytest.mark.parametrize("params", [None, {}, {"protocolVersion": 3}])
def test_an_initialize_that_is_wrong_waits_for_the_daemon(early: Early, params: dict[str, object] | None) -> None:
    assert answer(early, request("initialize", params), is_open=False) is None


def test_the_tools_of_both_eras(early: Early) -> None:
    assert answer(early, request("tools/list", {"_meta": {"progressToken": 0}})) == {"tools": ["old"]}
    assert answer(early, request("tools/list", MODERN), is_open=False) == SNAPSHOT["tools/list"]["modern"]  # type: ignore[index]


def test_the_tools_before_the_handshake_or_from_a_cursor_wait_for_the_daemon(early: Early) -> None:
    assert answer(early, request("tools/list"), is_open=False) is None
    assert answer(early, request("tools/list", {"cursor": "2"})) is None


def test_ping_and_discover(early: Early) -> None:
    assert answer(early, request("ping"), is_open=False) == {}
    assert answer(early, request("ping", MODERN)) is None
    assert answer(early, request("server/discover", MODERN), is_open=False) == SNAPSHOT["server/discover"]
    assert answer(early, request("server/discover")) is None


def test_a_modern_version_that_the_snapshot_does_not_know_waits_for_the_daemon(early: Early) -> None:
    unknown = {"_meta": {MODERN_KEY: "2031-01-01"}}
    assert answer(early, request("server/discover", unknown)) is None
    assert answer(early, request("tools/list", unknown)) is None


def test_anything_else_waits_for_the_daemon(early: Early) -> None:
    assert answer(early, request("tools/call", {"name": "x"})) is None
    assert answer(early, request("resources/list")) is None


@pytest.mark.parametrize("content", [None, b"", b"[]", b"{", b"\xff", b'{"tools/list":3,"versions":{}}'])
def test_without_a_snapshot_there_is_no_early_answer(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "broken.json"
    if content is not None:
        path.write_bytes(content)
    early = Early(str(path))
    assert answer(early, request("tools/list")) is None
    assert answer(early, request("initialize", {"protocolVersion": "x"})) is None
    assert answer(early, request("server/discover", MODERN)) is None


def test_the_snapshot_is_read_only_when_it_is_needed(tmp_path: Path) -> None:
    early = Early(str(tmp_path / "later.json"))
    assert answer(early, request("ping")) == {}
    (tmp_path / "later.json").write_text(json.dumps(SNAPSHOT))
    assert answer(early, request("tools/list")) == {"tools": ["old"]}


def test_the_packaged_snapshot_answers_everything() -> None:
    early = Early()
    initialized = answer(early, request("initialize", {"protocolVersion": "2025-06-18"}), is_open=False)
    assert isinstance(initialized, dict)
    assert initialized["protocolVersion"] == "2025-06-18"
    for params in (None, MODERN):
        listed = answer(early, request("tools/list", params))
        assert isinstance(listed, dict)
        assert "a2a_wait" in {tool["name"] for tool in listed["tools"]}
    assert answer(early, request("server/discover", MODERN))


TROUBLE = Trouble("Nobody listens.", "Start it with: pursersctl start")


def test_a_call_that_cannot_be_made_is_a_tool_error() -> None:
    found = json.loads(Early().unavailable(request("tools/call", {"name": "t"}), TROUBLE, was_sent=False))
    text = "Nobody listens. Start it with: pursersctl start"
    assert found["id"] == "i"
    assert found["result"] == {
        "content": [{"type": "text", "text": text}],
        "structuredContent": {
            "error": {
                "code": "daemon_unavailable",
                "message": text,
                "retryable": True,
                "action": "Start it with: pursersctl start",
                "outcome": "not_sent",
            }
        },
        "isError": True,
    }


def unknown(name: str, **arguments: object) -> tuple[dict[str, object], str]:
    """The error of a call that had been sent, and what the model reads."""
    asked = request("tools/call", {"name": name, "arguments": arguments})
    found = json.loads(Early().unavailable(asked, TROUBLE, was_sent=True))
    return found["result"]["structuredContent"]["error"], found["result"]["content"][0]["text"]


def test_a_call_that_may_have_been_made_says_what_it_was_about_and_how_to_look() -> None:
    failure, text = unknown("ticket_question_ask", ticket_id="TK-1", message="long", kind="decision")
    assert (failure["code"], failure["outcome"], failure["retryable"]) == ("outcome_unknown", "unknown", False)
    assert (failure["tool"], failure["target"]) == ("ticket_question_ask", {"ticket_id": "TK-1"})
    assert text == (
        'The outcome of ticket_question_ask on {"ticket_id": "TK-1"} is unknown (LW-CALL): it had reached the daemon, which '
        "was lost before it answered. Do not just repeat it. ticket_get shows the questions of the ticket in "
        "coordinator_questions. Nobody listens. Start it with: pursersctl start"
    )
    failure, _ = unknown("board_human_requests", boards=["b"], answer={"ticket_id": "TK-1", "content": {"secret": 1}})
    assert failure["target"] == {"boards": ["b"], "answer.ticket_id": "TK-1"}
    _, text = unknown("board_unwatch", all=True)
    assert text.startswith("The outcome of board_unwatch is unknown (LW-CALL): ")


def test_of_a_tool_that_nobody_knows_the_ids_are_named() -> None:
    failure, text = unknown("t", ticket_id="TK-1", message="long")
    assert (failure["tool"], failure["target"]) == ("t", {"ticket_id": "TK-1"})
    assert "Do not just repeat it. Look at its effect first. Nobody listens." in text


def test_a_call_that_changes_nothing_may_be_made_again() -> None:
    params = {"name": "a2a_wait", "arguments": {}}
    found = json.loads(Early().unavailable(request("tools/call", params), TROUBLE, was_sent=True))
    failure = found["result"]["structuredContent"]["error"]
    assert (failure["code"], failure["outcome"], failure["retryable"]) == ("daemon_unavailable", "unknown", True)
    assert failure["message"] == "Nobody listens. Start it with: pursersctl start"


def test_the_modern_era_marks_the_result_as_complete() -> None:
    found = json.loads(Early().unavailable(request("tools/call", {"name": "t", **MODERN}), TROUBLE, was_sent=False))
    assert found["result"]["resultType"] == "complete"


def test_another_request_gets_an_error() -> None:
    found = json.loads(Early().unavailable(request("resources/list"), TROUBLE, was_sent=False))
    assert found["error"] == {"code": UNAVAILABLE, "message": "Nobody listens. Start it with: pursersctl start"}
