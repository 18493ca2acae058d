"""What one line of the host is, and what it hears about a bad one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursers_shim.message import (
    INVALID_REQUEST,
    PARSE_ERROR,
    Notification,
    Refused,
    Request,
    Response,
    id_key,
    lost_id,
    read,
    result,
    too_long,
)


def refusal(line: bytes) -> dict[str, object]:
    message = read(line)
    assert isinstance(message, Refused)
    assert message.answer.endswith(b"\n")
    answer = json.loads(message.answer)
    assert answer.keys() == {"jsonrpc", "id", "error"}
    return {"id": answer["id"], **answer["error"]}


def test_a_request_keeps_its_bytes() -> None:
    line = b'{ "jsonrpc":"2.0", "id" : 7,"method":"tools/call", "params":{"x":1.50}}\r'
    message = read(line)
    assert isinstance(message, Request)
    assert (message.id, message.key, message.method, message.modern) == (7, "7", "tools/call", False)
    assert message.line == line + b"\n"


def test_ids_of_two_types_are_two_ids() -> None:
    number, text = read(b'{"jsonrpc":"2.0","id":1,"method":"m"}'), read(b'{"jsonrpc":"2.0","id":"1","method":"m"}')
    assert isinstance(number, Request)
    assert isinstance(text, Request)
    assert number.key != text.key


@pytest.mark.parametrize("meta", ['{"progressToken":3}', '"text"', "null"])
def test_a_plain_meta_is_not_the_modern_era(meta: str) -> None:
    message = read(f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{meta}}}}}'.encode())
    assert isinstance(message, Request)
    assert not message.modern


def test_the_protocol_version_in_meta_is_the_modern_era() -> None:
    meta = '{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
    message = read(f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{meta}}}}}'.encode())
    assert isinstance(message, Request)
    assert message.modern


def test_notifications_and_responses() -> None:
    plain = read(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    assert isinstance(plain, Notification)
    assert plain.cancels is None
    cancel = read(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}')
    assert isinstance(cancel, Notification)
    assert cancel.cancels == '"a"'
    response = read(b'{"jsonrpc":"2.0","id":4,"result":{}}')
    assert isinstance(response, Response)
    assert response.key == "4"
    assert isinstance(read(b'{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":"no"}}'), Response)


@pytest.mark.parametrize("line", [b"", b"  \t", b"\r", b'{"jsonrpc":"2.0","id":null,"result":1}'])
def test_lines_without_effect(line: bytes) -> None:
    assert read(line) is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"hello", "not JSON"),
        (b'{"jsonrpc":"2.0","id":1,', "not JSON"),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"m"}', "NaN"),
        (b'{"a":1} {"b":2}', "not JSON"),
        (b'{"id":1\0}', "NUL"),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', "not valid UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b"1" * 5000, "not JSON"),
    ],
)
def test_what_is_not_json(line: bytes, words: str) -> None:
    found = refusal(line)
    assert (found["id"], found["code"]) == (None, PARSE_ERROR)
    assert str(found["message"]).startswith("Parse error: ")
    assert words in str(found["message"])
    assert "Send" in str(found["message"])


@pytest.mark.parametrize(
    ("line", "identity", "words"),
    [
        (b"1", None, "JSON object"),
        (b'"text"', None, "JSON object"),
        (b"null", None, "JSON object"),
        (b"[]", None, "one message per line"),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', None, "one message per line"),
        (b'{"jsonrpc":"2.0","id":5}', 5, "neither method nor result nor error"),
        (b'{"jsonrpc":"2.0"}', None, "neither method nor result nor error"),
        (b'{"jsonrpc":"2.0","id":true,"method":"m"}', None, "string or an integer"),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"m"}', None, "string or an integer"),
        (b'{"jsonrpc":"2.0","id":null,"method":"m"}', None, "string or an integer"),
        (b'{"jsonrpc":"2.0","id":{},"method":"m"}', None, "string or an integer"),
        (b'{"jsonrpc":"2.0","id":[1]}', None, "string or an integer"),
        (b'{"jsonrpc":"2.0","id":2,"method":7}', 2, "method must be a string"),
        (b'{"id":"x","method":"m"}', "x", '"jsonrpc":"2.0"'),
        (b'{"jsonrpc":"1.0","id":3,"method":"m"}', 3, '"jsonrpc":"2.0"'),
        (b'{"jsonrpc":"2.0","id":4,"method":"m","params":[1]}', 4, "params must be an object"),
    ],
)
def test_what_is_no_request(line: bytes, identity: object, words: str) -> None:
    found = refusal(line)
    assert (found["id"], found["code"]) == (identity, INVALID_REQUEST)
    assert words in str(found["message"])


@given(st.binary(max_size=60).filter(lambda b: b"\n" not in b))
def test_nothing_makes_it_fail(line: bytes) -> None:
    read(line)


@pytest.mark.parametrize(
    ("head", "tail", "identity"),
    [
        (b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"a":"xx', b"xx", 9),
        (b'{"method":"tools/call","params":{"id":3,"a":"xx', b'xx"},"jsonrpc":"2.0","id":"q"}', "q"),
        (b'{"method":"tools/call","params":{"id":3,"a":"xx', b'xx","id":3}}', None),
        (b'{"method":"tools/call","params":{"a":"xx', b'xx","id":3,"b":1}}', None),
        (b'{"jsonrpc":"2.0","method":"m","id":12', b"345}", None),
        (b'{"jsonrpc":"2.0","id":4,"result":"xx', b"xx", None),
        (b"xxxx", b"xxxx", None),
        (b"{", b"}", None),
    ],
)
def test_the_id_of_a_line_that_was_too_long(head: bytes, tail: bytes, identity: object) -> None:
    answer = json.loads(too_long(head, tail, 1000).answer)
    assert answer["id"] == identity
    assert answer["error"]["code"] == INVALID_REQUEST
    assert "1000 bytes" in answer["error"]["message"]


def test_the_id_of_a_cut_answer() -> None:
    assert lost_id(b'{"jsonrpc":"2.0","id":4,"result":"xx', b"xx") == 4


@given(st.one_of(st.integers(), st.text(st.characters())))
def test_an_answer_carries_the_id_as_it_came(identity: int | str) -> None:
    assert json.loads(result(identity, {}))["id"] == identity
    assert json.loads(id_key(identity)) == identity
