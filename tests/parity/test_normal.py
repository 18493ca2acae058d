"""What is taken out of an outcome, and what stays."""

from parity.normal import normal, outcome

HOME = {"alpha": 0}


def test_names_times_and_places_in_the_journal_are_replaced() -> None:
    names = {"TK-1": "<A>", "TK-12": "<B>", "alpha": "<board>"}
    event = {
        "id": "EV-0123456789ab-00000000000000000042",
        "seq": 42,
        "ticket_id": "TK-12",
        "payload_ref": "board://alpha/ticket/TK-1",
        "occurred_at": "2026-07-28T10:00:00.123456+00:00",
        "rejection_count": 42,
        "actor": "board-reaper:PR-0f",
    }
    assert normal({"new_seq": 40, "events": [event], "alpha": None}, names, {"alpha": 41}) == {
        "new_seq": "base-1",
        "events": [
            {
                "id": "<event id>",
                "seq": "base+1",
                "ticket_id": "<B>",
                "payload_ref": "board://<board>/ticket/<A>",
                "occurred_at": "<time>",
                "rejection_count": 42,
                "actor": "board-reaper:<whoever called>",
            }
        ],
        "<board>": None,
    }


def test_each_board_has_its_own_places() -> None:
    names = {"alpha": "<board>", "beta": "<second>"}
    found = {
        "new_seq": {"alpha": 42, "beta": 7, "gamma": 3},
        "events": [{"board_id": "beta", "seq": 6, "offer": {"board_id": "beta"}}, {"board_id": "alpha", "seq": 41}],
        "warnings": {"beta": [{"requested_cursor": 9}]},
        "dropped": {"alpha": 42},
    }
    assert normal(found, names, {"alpha": 40, "beta": 5}) == {
        "new_seq": {"<board>": "base+2", "<second>": "base+2", "gamma": 3},
        "events": [
            {"board_id": "<second>", "seq": "base+1", "offer": {"board_id": "<second>"}},
            {"board_id": "<board>", "seq": "base+1"},
        ],
        "warnings": {"<second>": [{"requested_cursor": "base+4"}]},
        "dropped": {"<board>": 42},
    }


def test_a_duration_becomes_what_it_means() -> None:
    waited = [normal({"waited_s": seconds}, {}, HOME, 2.0)["waited_s"] for seconds in (0.0, 0.01, 1.98, 2.0, 2.1)]
    assert waited == ["nothing", "less than timeout_s", "less than timeout_s", "all of timeout_s", "all of timeout_s"]
    many = {"mode_by_board": {}, "waited_s": 0.0}
    assert normal(many, {}, HOME, 2.0)["waited_s"] == "less than timeout_s"
    assert normal({"mode": "error", "waited_s": 0.3}, {}, HOME) == {"mode": "error", "waited_s": "(some)"}


def test_the_text_beside_the_data_is_compared_with_it() -> None:
    def answer(text: str) -> dict[str, object]:
        return {"result": {"content": [{"type": "text", "text": text}], "structuredContent": {"a": "é"}}}

    assert outcome(answer('{\n  "a": "é"\n}')) == {"is_error": False, "data": {"a": "é"}, "text": "(the data)"}
    assert outcome(answer('{"a": "é"}'))["text"] == '{"a": "é"}'
    assert outcome({"error": {"code": -1, "message": "no"}}) == {"rpc_error": {"code": -1, "message": "no"}}
