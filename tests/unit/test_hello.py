"""conversation/hello: what opens a link, and what is refused with a text that helps."""

import json
from typing import Any

import pytest

from pursers_shim import wire
from pursersd.conversation.hello import Hello, Pending, Refused, Resume, parse

NEWEST = wire.PROTOCOL[1]
SHIM: dict[str, Any] = {
    "pursers": "hello",
    "protocol": list(wire.PROTOCOL),
    "role": "shim",
    "version": "1.2",
    "pid": 10,
    "started": 55,
    "ppid": 9,
    "parent_started": 44,
    "cwd": "/somewhere",
    "env": {"ONBOARD_AGENT_NAME": "é"},
    "resume": {
        "conversation": "c-1",
        "daemon_epoch": 3,
        "link_epoch": 2,
        "pending": [{"id": 1, "age_s": 2.5}, {"id": "1", "age_s": 0}],
    },
}


def line(**fields: object) -> bytes:
    return wire.encode({**SHIM, **fields})


def refusal(data: bytes) -> Refused:
    with pytest.raises(Refused) as caught:
        parse(data)
    return caught.value


def test_it_does_not_show_the_environment() -> None:
    hello, _ = parse(line(env={"ONBOARD_CENTRAL_TOKEN": "s3cr3t-value"}))
    assert hello.env["ONBOARD_CENTRAL_TOKEN"] == "s3cr3t-value"
    assert "s3cr3t" not in f"{hello} {hello!r} {[hello]}"


def test_a_whole_hello() -> None:
    hello, version = parse(line())
    assert version == NEWEST
    assert hello == Hello(
        pursers="hello",
        protocol=wire.PROTOCOL,
        role="shim",
        version="1.2",
        pid=10,
        started=55.0,
        ppid=9,
        parent_started=44.0,
        cwd="/somewhere",
        env={"ONBOARD_AGENT_NAME": "é"},
        resume=Resume("c-1", 3, 2, [Pending(1, 2.5), Pending("1", 0.0)]),
    )
    assert hello.resume is not None
    assert [type(pending.id) for pending in hello.resume.pending] == [int, str]


def test_the_shortest_hello() -> None:
    hello, _ = parse(b'{"pursers":"hello","protocol":[1,1],"role":"control"}')
    assert (hello.role, hello.pid, hello.env, hello.resume) == ("control", 0, {}, None)


def test_a_newer_client_may_say_more() -> None:
    assert parse(line(mood="good", resume={"conversation": "c", "more": [1]}))[0].pid == 10


@pytest.mark.parametrize("name", ["pursers", "protocol", "role"])
def test_what_every_hello_needs(name: str) -> None:
    fields = {k: v for k, v in SHIM.items() if k != name}
    refused = refusal(wire.encode(fields))
    assert refused.code == "bad_hello"
    assert name in str(refused)


WRONG: list[tuple[str, object]] = [
    ("pursers", "welcome"),
    ("pursers", 1),
    ("protocol", 1),
    ("protocol", [1]),
    ("protocol", [1, 1, 1]),
    ("protocol", ["1", "1"]),
    ("protocol", None),
    ("role", "root"),
    ("role", None),
    ("version", 1),
    ("pid", "10"),
    ("pid", True),
    ("pid", 10.5),
    ("started", "55"),
    ("ppid", None),
    ("parent_started", [44]),
    ("cwd", 3),
    ("env", ["A=b"]),
    ("env", {"A": 1}),
    ("env", {"A": None}),
    ("resume", "c-1"),
    ("resume", {}),
    ("resume", {"conversation": 7}),
    ("resume", {"conversation": "c", "link_epoch": "2"}),
    ("resume", {"conversation": "c", "pending": {"id": 1}}),
    ("resume", {"conversation": "c", "pending": [{"id": None}]}),
    ("resume", {"conversation": "c", "pending": [{"id": True}]}),
    ("resume", {"conversation": "c", "pending": [{"id": 1, "age_s": "2"}]}),
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_types_are_refused(name: str, value: object) -> None:
    refused = refusal(line(**{name: value}))
    assert refused.code == "bad_hello"
    assert not refused.retryable
    assert "must be a hello" in str(refused)


@pytest.mark.parametrize(
    "data",
    [b"", b"GET / HTTP/1.1\r", b"null", b"[]", b'"hello"', b"\xff\xfe", b'{"pursers":"hello"', b"\x00", b"[" * 100_000],
    ids=["nothing", "http", "null", "list", "string", "not utf-8", "cut off", "nul", "deep"],
)
def test_anything_but_a_hello_is_refused(data: bytes) -> None:
    assert refusal(data).code == "bad_hello"


def test_a_field_nested_without_end_is_refused() -> None:
    assert refusal(line(mood="x").replace(b'"x"', b"[" * 100_000)).code == "bad_hello"


def test_bad_utf8_inside_a_string_is_refused() -> None:
    assert refusal(line().replace("é".encode(), b"\xff")).code == "bad_hello"


@pytest.mark.parametrize(
    ("protocol", "agreed"),
    [([1, 1], 1), ([1, 99], NEWEST), ([0, 1], 1), ([NEWEST + 1, 99], None), ([0, 0], None), ([1, 0], None)],
)
def test_the_protocol_is_the_newest_that_both_speak(protocol: list[int], agreed: int | None) -> None:
    if agreed is None:
        refused = refusal(line(protocol=protocol))
        assert refused.code == "protocol"
        assert "Update it" in str(refused)
    else:
        assert parse(line(protocol=protocol))[1] == agreed


def test_a_refusal_says_what_and_whether_to_come_again() -> None:
    said = json.loads(Refused("busy", "come later", retryable=True).line())
    assert said == {"pursers": "refuse", "code": "busy", "text": "come later", "retryable": True}


@pytest.mark.parametrize(
    ("role", "theirs", "words"),
    [
        ("shim", (0, 0), "This shim is too old: it speaks link protocol 0 to 0"),
        ("control", (0, 0), "This pursersctl is too old"),
        ("shim", (9, 10), "This pursersd is too old for the shim 9.9"),
        ("control", (9, 10), "This pursersd is too old for the pursersctl 9.9"),
    ],
)
def test_the_older_side_is_named(role: str, theirs: tuple[int, int], words: str) -> None:
    line = wire.encode({"pursers": "hello", "protocol": list(theirs), "role": role, "version": "9.9"})
    with pytest.raises(Refused) as refused:
        parse(line)
    assert words in str(refused.value)
    assert "Update it" in str(refused.value)
    assert (refused.value.code, refused.value.retryable) == ("protocol", False)
