"""Arguments, boards, credentials and addresses that are no good: each call says what to do, and nobody else notices."""

import json
from pathlib import Path

import pytest

from rig.central import WORKER_SCOPE, Central, free_port
from rig.shim import ShimProcess, ToolError
from system.scene import Bystander, Json

UNSET = "ONBOARD_CENTRAL_TOKEN is not set. Set it, or ONBOARD_CENTRAL_TOKEN_FILE"


def conversation(bystander: Bystander, environment: dict[str, str]) -> ShimProcess:
    """A conversation in the bystander's daemon; its home ends it."""
    shim = bystander.home.shim(environment)
    shim.initialize()
    return shim


def failure(shim: ShimProcess) -> Json:
    """The error of a wait; the other tools must tell the same cause."""
    with shim:
        result = shim.call_tool("a2a_wait", {"timeout_s": 1})
        assert result["events"] == []
        assert result["new_seq"] is None
        error: Json = result["error"]
        with pytest.raises(ToolError) as refused:
            shim.call_tool("project_registry_get")
        assert error["detail"] in refused.value.text
        return error


# --- arguments ---


@pytest.fixture
def shim(central: Central, board: str, bystander: Bystander) -> ShimProcess:
    return conversation(
        bystander, bystander.home.environment(central.url, central.worker("ann", board), board, "arguments")
    )


@pytest.mark.parametrize(
    ("since_seq", "text"),
    [
        (-1, "since_seq integer cursors must be non-negative; received -1"),
        (2**63, f"must be non-negative and at most {2**63 - 1}; received {2**63}"),
        ("x", "should be a valid integer"),
        (1.5, "should be a valid integer"),
        ([1], "should be a valid integer"),
        ({"alpha": 1}, "must be a non-negative integer when boards is omitted"),
    ],
    ids=repr,
)
def test_a_bad_cursor_is_refused_with_a_text(shim: ShimProcess, since_seq: object, text: str) -> None:
    with shim, pytest.raises(ToolError) as refused:
        shim.call_tool("a2a_wait", {"since_seq": since_seq, "timeout_s": 1})
    assert text in refused.value.text


@pytest.mark.parametrize(("since_seq", "meant"), [(True, 1), ("7", 7), (2**63 - 1, 2**63 - 1)])
def test_a_cursor_that_means_an_integer_is_taken_for_it(
    central: Central, board: str, shim: ShimProcess, since_seq: object, meant: int
) -> None:
    """As the bridge does; one that lies beyond the journal is set back to its end, with a warning."""
    ticket = central.create_ticket(board, "after the first event")
    head = central.head(board)
    assert 1 < head < 7
    with shim:
        result = shim.call_tool("a2a_wait", {"since_seq": since_seq, "timeout_s": 1})
    if meant < head:
        assert [event["ticket_id"] for event in result["events"]] == [ticket]
    else:
        assert [(w["requested_cursor"], w["clamped_cursor"]) for w in result["warnings"]] == [(meant, head)]
    assert result["new_seq"] >= head


# --- boards ---


@pytest.mark.parametrize("credential", ["of the board", "of no board", "of the owner"])
def test_a_board_that_does_not_exist_is_not_created(
    central: Central, board: str, bystander: Bystander, credential: str
) -> None:
    """A token that belongs to no board could found it: Central must not even be asked about it."""
    token = {
        "of the board": central.worker("ann", board),
        "of no board": central.mint("ann", WORKER_SCOPE),
        "of the owner": central.admin,
    }[credential]
    before = central.board_count()
    environment = bystander.home.environment(central.url, token, "no-such-board", "lost")
    error = failure(conversation(bystander, environment))
    assert error["cause_class"] == "authorization"
    assert error["retryable"] is False
    assert "'no-such-board' is not one of this credential's boards" in error["detail"]
    assert "Check its name" in error["detail"]
    assert central.board_count() == before
    listed = central.call(central.admin, "board_list")["boards"]
    assert "no-such-board" not in {found["board_id"] for found in listed}


# --- credentials and addresses ---


@pytest.mark.parametrize("token", [None, "", "  "], ids=["missing", "empty", "blank"])
def test_a_missing_token(central: Central, board: str, bystander: Bystander, token: str | None) -> None:
    error = failure(conversation(bystander, bystander.home.environment(central.url, token, board, "none")))
    assert error["cause_class"] == "configuration"
    assert UNSET in error["detail"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "is not readable (No such file or directory). Set it to the path of a text file"),
        (b"", "is empty. Write the bare token into that file."),
        (b" \n", "is empty. Write the bare token into that file."),
        (b"\xff\xfe\x00", "is not readable. Set it to the path of a text file"),
        (b"two words", "must hold one token of visible ASCII characters, without spaces"),
    ],
    ids=["missing", "empty", "blank", "no text", "two words"],
)
def test_a_token_file_that_is_no_good(
    central: Central, board: str, bystander: Bystander, tmp_path: Path, content: bytes | None, text: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    extra = {"ONBOARD_CENTRAL_TOKEN_FILE": str(file)}
    error = failure(conversation(bystander, bystander.home.environment(central.url, None, board, "file", extra=extra)))
    assert error["cause_class"] == "configuration"
    assert f"ONBOARD_CENTRAL_TOKEN_FILE {text}" in error["detail"]


def test_a_token_file_that_is_a_folder(central: Central, board: str, bystander: Bystander, tmp_path: Path) -> None:
    extra = {"ONBOARD_CENTRAL_TOKEN_FILE": str(tmp_path)}
    error = failure(conversation(bystander, bystander.home.environment(central.url, None, board, "file", extra=extra)))
    assert "ONBOARD_CENTRAL_TOKEN_FILE is not readable" in error["detail"]


@pytest.mark.parametrize("kind", ["expired", "of nobody"])
def test_a_token_that_central_does_not_accept(central: Central, board: str, bystander: Bystander, kind: str) -> None:
    central.admit(board, "ann")
    token = central.mint("ann", WORKER_SCOPE, board, lifetime=-60) if kind == "expired" else "nonsense"
    environment = bystander.home.environment(central.url, token, board, "refused")
    shim = conversation(bystander, environment)
    assert shim.call_tool("a2a_wait", {"timeout_s": 1})["error"]["cause_class"] == "authentication"
    warned = bystander.home.status()["warnings"]
    assert "credential_refused" in {warning["code"] for warning in warned}
    error = failure(shim)
    assert error["retryable"] is False
    assert "unknown, expired or revoked. Get a new token from the board's admin" in error["detail"]
    assert token not in json.dumps([error, warned])


def test_an_address_without_central_behind_it(central: Central, board: str, bystander: Bystander) -> None:
    url = f"http://127.0.0.1:{free_port()}/mcp"
    shim = conversation(bystander, bystander.home.environment(url, central.worker("ann", board), board, "nowhere"))
    assert shim.call_tool("a2a_wait", {"timeout_s": 1})["error"]["cause_class"] == "transport"
    warned = [warning for warning in bystander.home.status()["warnings"] if warning["code"] == "central_unreachable"]
    assert len(warned) == 1
    assert url in warned[0]["text"]
    error = failure(shim)
    assert error["retryable"] is True
    assert f"unreachable at {url}" in error["detail"]
    assert "Start it, or correct ONBOARD_CENTRAL_URL." in error["detail"]


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/mcp", "127.0.0.1:8766", "http://ann:secret@127.0.0.1/mcp"])
def test_an_address_that_is_none(central: Central, board: str, bystander: Bystander, url: str) -> None:
    error = failure(conversation(bystander, bystander.home.environment(url, central.worker("ann", board), board, "x")))
    assert error["cause_class"] == "configuration"
    assert error["detail"].startswith("ONBOARD_CENTRAL_URL must ")
    assert "Set it to Central's address" in error["detail"]
    assert "secret" not in json.dumps(error)
