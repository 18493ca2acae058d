"""Lines that are no good, sent through a shim and straight to the daemon: a readable refusal, and nobody else notices."""

import json
from collections.abc import Iterator

import pytest

from pursers_shim.wire import MAX_LINE
from rig.link import Link
from rig.shim import SHIM, ShimProcess
from rig.speaker import Speaker, modern_meta
from rig.wait import until
from system.scene import PATIENCE, Bystander, Json

DOORS = ["shim", "link"]

PARSE, INVALID, PARAMS = -32700, -32600, -32602


def call(number: object, method: str = "ping", **params: object) -> Json:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


@pytest.fixture(params=DOORS)
def raw(request: pytest.FixtureRequest, bystander: Bystander) -> Iterator[Speaker]:
    """A conversation of the bystander's daemon before its handshake: behind a shim, or as if the test were one."""
    environment = bystander.home.environment(agent="bad")
    if request.param == "shim":
        with ShimProcess([SHIM], environment) as shim:
            yield shim
    else:
        with Link(bystander.home.place.socket, environment) as link:
            yield link


@pytest.fixture
def speaker(raw: Speaker) -> Speaker:
    """The same after its handshake."""
    raw.initialize()
    return raw


def answer(speaker: Speaker, number: object, nth: int = 1) -> Json:
    """The nth answer to a request id; None for what could not be attributed."""
    until(lambda: len(speaker.answers(number)) >= nth, PATIENCE, f"answer {nth} to {number!r}")
    return speaker.answers(number)[nth - 1]


def assert_goes_on(speaker: Speaker) -> None:
    """The conversation works and has got nothing but whole messages."""
    assert speaker.request("ping") == {}
    assert speaker.rubbish == []


LINES = {
    "no JSON": (b"hello", PARSE, "JSON"),
    "cut off": (b'{"jsonrpc":"2.0","id":1,', PARSE, "JSON"),
    "NaN": (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', PARSE, "JSON"),
    "a number": (b"17", INVALID, "one JSON-RPC"),
    "a string": (b'"ping"', INVALID, "one JSON-RPC"),
    "null": (b"null", INVALID, "one JSON-RPC"),
    "a batch": (json.dumps([call(1), call(2)]).encode(), INVALID, "per line"),
    "NUL": (b'{"jsonrpc":"2.0","id":1,"method":"pi\0ng"}', PARSE, "JSON"),
    "invalid UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}', PARSE, "UTF-8"),
    "neither method nor result": (b'{"jsonrpc":"2.0"}', INVALID, "method"),
    "an id that is a list": (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', INVALID, "id"),
}


@pytest.mark.parametrize(("line", "code", "text"), LINES.values(), ids=LINES.keys())
def test_a_bad_line_gets_a_text_and_the_conversation_goes_on(
    speaker: Speaker, line: bytes, code: int, text: str
) -> None:
    speaker.send(line + b"\n")
    error = answer(speaker, None)["error"]
    assert error["code"] == code, error
    assert text in error["message"]
    assert_goes_on(speaker)
    assert len(speaker.answers(None)) == 1


def test_a_line_of_17_mib_gets_a_text_and_the_conversation_goes_on(speaker: Speaker) -> None:
    speaker.send(json.dumps(call(77, "tools/call", name="x" * (17 * 1024 * 1024))).encode() + b"\n")
    error = until(
        lambda: next((x["error"] for x in [*speaker.answers(77), *speaker.answers(None)]), None), PATIENCE, "an error"
    )
    assert error["code"] == INVALID
    assert f"longer than {MAX_LINE} bytes" in error["message"]
    assert_goes_on(speaker)


def test_blank_lines_are_nothing(speaker: Speaker) -> None:
    speaker.send(b"\n\r\n   \n")
    assert_goes_on(speaker)
    assert speaker.answers(None) == []


@pytest.mark.parametrize("line", [json.dumps(call("last")).encode(), b"hello"], ids=["a request", "no JSON"])
def test_a_last_line_without_newline_is_a_line(bystander: Bystander, line: bytes) -> None:
    def ended() -> ShimProcess:
        """Sends it and ends stdin; on a busy machine the answer may come after the shim's quarter of a second."""
        shim = bystander.home.shim(bystander.home.environment(agent="bad"))
        shim.initialize()
        shim.send(line)
        shim.close_stdin()
        assert shim.wait() == 0
        shim.close()  # and with it everything that it wrote has been read
        assert shim.answers("last") or shim.answers(None), "no answer in time"
        return shim

    shim = until(ended, PATIENCE, "the line is answered")
    [last] = shim.answers("last") or shim.answers(None)
    assert ("error" in last) == (line == b"hello")
    assert shim.rubbish == []


def test_a_request_before_the_handshake_is_told_what_to_do_first(raw: Speaker) -> None:
    raw.say(call("early", "tools/list"))
    error = answer(raw, "early")["error"]
    assert error["code"] == PARAMS
    assert "Send initialize first" in error["message"]
    raw.initialize()
    assert raw.request("tools/list")["tools"]


def test_an_era_that_changes_in_the_middle_is_refused(speaker: Speaker) -> None:
    speaker.say(call("other era", "tools/list", _meta=modern_meta()))
    assert answer(speaker, "other era")["error"]["code"] == INVALID
    assert_goes_on(speaker)
