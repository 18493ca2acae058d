"""The list of differences itself: complete, without overlap, and the same as docs/compatibility.md."""

import re
from collections import Counter
from pathlib import Path

from parity.compare import ABSENT, Has, Says, differing, value_at
from parity.differences import DIFFERENCES
from parity.scenarios import ALL, SCENARIOS
from parity.verdict import problems

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"


def test_the_document_tells_every_difference_and_no_other() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert re.findall(r"^### `([a-z-]+)`$", text, re.MULTILINE) == [difference.id for difference in DIFFERENCES]


def test_every_difference_has_a_scenario_that_exists_and_a_reason() -> None:
    for difference in DIFFERENCES:
        assert difference.ours, difference.id
        assert difference.ours.keys() <= ALL.keys(), difference.id
        assert difference.reason.endswith("."), difference.id


def test_a_place_belongs_to_one_difference() -> None:
    places = Counter((name, path) for d in DIFFERENCES for name, fields in d.ours.items() for path in fields)
    assert max(places.values()) == 1, places.most_common(3)


def test_scenarios_have_names_of_their_own() -> None:
    assert len(ALL) == len(SCENARIOS)


def test_what_differs_is_found() -> None:
    theirs = {"a": 1, "b": [1, {"c": 2}], "d": [1], "e": True, "f": None, "gone": 0}
    ours = {"f": None, "e": 1, "d": [1, 2], "b": [1, {"c": 3}], "a": 1, "new": None}
    assert list(differing(theirs, ours)) == [
        ("b.1.c", 2, 3),
        ("d", [1], [1, 2]),
        ("e", True, 1),
        ("gone", 0, ABSENT),
        ("new", ABSENT, None),
    ]
    assert list(differing([1, [2]], [1, [3]])) == [("1.0", 2, 3)]


def test_what_is_at_a_path() -> None:
    found = {"a": [{"b": None}], "c": {"0": 1}}
    assert [value_at(found, path) for path in ("a.0.b", "c.0", "a.1.b", "a.b", "d")] == [None, 1, *[ABSENT] * 3]


def test_patterns() -> None:
    assert Says("one", "two") == "two and one"
    assert Says("one", "two") != "only one"
    assert Says("one") != 1
    assert [Has(a=1, b=Has(c=2))] == [{"a": 1, "b": {"c": 2, "d": 3}}]
    assert Has(a=1) != {"a": 2}
    assert Has() != []


def test_what_is_wrong_with_ours_is_told() -> None:
    scenario = "live-created"
    theirs = [{"data": {"waited_s": "all of timeout_s"}}, {"data": {}}]
    assert any("not an intended" in text for text in problems(scenario, [{"data": 1}], [{"data": 2}]))
    assert any("no difference any more" in text for text in problems("routes-live-nothing-left", theirs, theirs))
    assert list(problems("no such scenario", theirs, theirs)) == []
