"""What an identity acknowledges and watches, and the file with the records."""

import json

import pytest

from pursersd.rules import digest_file
from pursersd.rules.digest_file import Damaged, Newer
from pursersd.rules.digest_record import REMEMBERED, Record, acknowledge, unwatch, watch

NOBODY: frozenset[str] = frozenset()


def test_places_only_move_up_and_requests_are_those_of_now() -> None:
    record, _ = acknowledge(Record(), {"a": 5, "b": -3}, frozenset(["R1", "R2"]), key="1", was_sent_before=False)
    record, said = acknowledge(record, {"a": 3, "c": 1}, frozenset(["R2", "R3"]), key="2", was_sent_before=False)
    assert said == {"ok": True, "cursor_map": {"a": 5, "b": 0, "c": 1}, "acknowledged_human_requests": 1}
    assert record.human_requests == {"R2", "R3"}


def test_a_call_that_comes_again_changes_nothing_and_says_the_same() -> None:
    record, first = acknowledge(Record(), {"a": 5}, frozenset(["R1"]), key="1", was_sent_before=False)
    record, _ = acknowledge(record, {"a": 7}, NOBODY, key="2", was_sent_before=False)
    after, again = acknowledge(record, {"a": 9}, frozenset(["R9"]), key="1", was_sent_before=True)
    assert (after, again) == (record, first)


def test_a_call_that_was_sent_and_not_carried_out_is_carried_out() -> None:
    record, said = acknowledge(Record(), {"a": 5}, NOBODY, key="1", was_sent_before=True)
    assert record.cursors == said["cursor_map"] == {"a": 5}


def test_the_same_key_in_a_later_call_is_a_later_call() -> None:
    record, _ = acknowledge(Record(), {"a": 5}, NOBODY, key="1", was_sent_before=False)
    record, _ = acknowledge(record, {"a": 7}, NOBODY, key="1", was_sent_before=False)
    assert record.cursors == {"a": 7}
    assert len(record.answers) == 1


def test_few_answers_are_remembered() -> None:
    record = Record()
    for number in range(REMEMBERED + 5):
        record, _ = acknowledge(record, {"a": number}, NOBODY, key=str(number), was_sent_before=False)
    assert [answer.key for answer in record.answers] == [str(n) for n in range(5, REMEMBERED + 5)]


def test_watches_are_added_and_taken_away() -> None:
    record, said = watch(Record(), ["b", "a"], ["x"])
    assert said == {"ok": True, "watched_ticket_ids": ["a", "b"], "watched_tags": ["x"]}
    record, said = unwatch(record, ["a", "c"], [], everything=False)
    assert said["watched_ticket_ids"] == ["b"]
    assert unwatch(record, [], [], everything=True)[0] == Record()


def test_the_file_gives_back_what_was_put_in() -> None:
    record, _ = acknowledge(
        Record(watched_tags=frozenset(["x"])), {"a": 5}, frozenset(["R"]), key="1", was_sent_before=False
    )
    text = digest_file.write({"i": record})
    assert digest_file.read(text) == {"i": record}
    assert digest_file.write(digest_file.read(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b'{"schema":0,"identities":{}}',
        b'{"schema":1}',
        b'{"schema":1,"identities":{"i":{"cursors":{"a":"x"}}}}',
    ],
)
def test_a_damaged_file_is_known_as_such(text: bytes) -> None:
    with pytest.raises(Damaged):
        digest_file.read(text)


def test_a_newer_file_is_not_guessed_at() -> None:
    with pytest.raises(Newer, match="schema 2"):
        digest_file.read(b'{"schema":2,"identities":[]}')


BRIDGE = {
    "schema_version": 1,
    "ack_cursor_map": {"a": 5, "b": -1},
    "watched_ticket_ids": ["T"],
    "watched_tags": ["x"],
    "human_request_acks": ["R"],
    "events": [{"actor": "AI-other", "seq": 1}],
}


def test_the_bridges_record_is_taken_over() -> None:
    record = digest_file.taken_over(json.dumps(BRIDGE).encode(), "AI-me")
    assert record.cursors == {"a": 5, "b": 0}
    assert (record.watched_ticket_ids, record.watched_tags, record.human_requests) == ({"T"}, {"x"}, {"R"})


def test_that_of_another_seat_is_not() -> None:
    """A bridge never reads its own seat's acts: whoever finds some there would be hidden what the other has seen."""
    theirs = BRIDGE | {"events": [{"actor": "AI-me", "seq": 1}]}
    assert digest_file.taken_over(json.dumps(theirs).encode(), "AI-me") == Record()


def test_identities_differ_by_central_and_seat() -> None:
    assert len({digest_file.identity(url, seat) for url in "uv" for seat in "ab"}) == 4


@pytest.mark.parametrize(("bridge", "ours"), [("/s/x.json", "/s/x.identities.json"), ("/s/x", "/s/x.identities.json")])
def test_our_file_lies_beside_the_bridges(bridge: str, ours: str) -> None:
    assert digest_file.own_name(bridge) == ours
