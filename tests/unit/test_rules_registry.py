"""rules.registry: the same registry as the real bridge's tool gives, and a readable text where that one gives none."""

import copy
import json
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pursersd.rules import registry
from rig.registry_oracle import FULL, ODD, PLAIN, Json, bridge, one, ours, refusal, refused, same, stored

QUICK = settings(max_examples=300)


def test_everything_at_once() -> None:
    same(FULL, taken=True)
    found = registry.validated(stored(json.dumps(FULL)))
    assert list(found) == [
        "schema_version",
        "projects",
        "delivery_defaults",
        "delivery_policy_defaults",
        "delivery_policy_groups",
    ]
    projects: Json = found["projects"]
    assert projects["mill"]["integration_ref"] == "pursers-integration"
    assert projects["bare"] == {**PLAIN, "delivery_workflow": {"mode": "direct"}}


def test_an_answer_without_a_registry_is_refused() -> None:
    answers: list[dict[str, object]] = [{}, {"state": None}, {"state": []}, {"state": {}}, {"state": {"value": FULL}}]
    for answer in answers:
        assert bridge(answer) is None
        assert "the document must be stored as JSON text" in refusal(answer)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{nope",
        "\ufeff{}",
        '{"schema_version": 1, "projects": {}} x',
        "[" * 100_000,
        '{"schema_version":' + "1" * 5000 + "}",
    ],
    ids=["empty", "cut", "byte order mark", "rest", "deep", "huge number"],
)
def test_text_that_is_not_json_is_refused(text: str) -> None:
    assert bridge(stored(text)) is None
    assert "the document must be JSON. " in refusal(stored(text))


@pytest.mark.parametrize("text", ["null", "[]", "7", '"x"', "NaN", "{}"])
def test_json_that_is_not_a_registry_is_refused(text: str) -> None:
    assert bridge(stored(text)) is None
    refusal(stored(text))


def test_the_last_of_two_equal_names_and_odd_numbers_count_as_in_python() -> None:
    for text in ('{"schema_version":2,"schema_version":1,"projects":{},"x":NaN}', '{"schema_version":1,"projects":{}}'):
        assert ours(stored(text)) == bridge(stored(text)) == '{"schema_version": 1, "projects": {}}'


@pytest.mark.parametrize("field", ["schema_version", "projects", *[k for k in FULL if k.startswith("delivery")]])
def test_root_fields_take_what_the_bridge_takes(field: str) -> None:
    same({k: v for k, v in one().items() if k != field}, taken=field not in one())
    for value in ODD:
        same({**one(), field: value})


@pytest.mark.parametrize("field", list(FULL["projects"]["mill"]))  # type: ignore[index]
def test_project_fields_take_what_the_bridge_takes(field: str) -> None:
    for value in (*ODD, "/x", "main", "fleet", "paused"):
        same(one(**{field: value}))
    same({"schema_version": 1, "projects": {"mill": {k: v for k, v in PLAIN.items() if k != field}}})


@pytest.mark.parametrize("name", ["", " ", "x ", "\tx", "\ud800", "ü", "a\nb", "x" * 5000])
def test_project_names_take_what_the_bridge_takes(name: str) -> None:
    same({"schema_version": 1, "projects": {name: PLAIN}})


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("https://git.example/a", True),
        ("https://git.example:99999/a", True),
        ("https://git.example/a;b", True),
        ("https://[::1]/a", True),
        ("https://git.example", False),
        ("https://git.example/", False),
        ("http://git.example/a", False),
        ("HTTPS://git.example/a", True),
        ("https:///a", False),
        ("https://u@git.example/a", False),
        ("https://:p@git.example/a", False),
        ("https://@git.example/a", False),
        ("https://git.example/a?b", False),
        ("https://git.example/a#b", False),
        ("https://git.example/a?", True),
        ("https://[::1/a", False),
        ("https://git.example/a\x00", False),
        ("https://git.example\u2100/a", False),
        (" https://git.example/a", False),
    ],
)
def test_repository_urls(url: str, taken: bool) -> None:
    same(one(repository_url=url), taken)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "the document must be an object"),
        ({"schema_version": 1}, "projects is missing"),
        ({"schema_version": 2, "projects": {}}, "schema_version must be 1"),
        ({"schema_version": 1, "projects": {"mill": 1}}, "project 'mill' must be an object"),
        (
            {"schema_version": 1, "projects": {" mill": PLAIN}},
            "project ' mill', its name must be non-empty and without blanks",
        ),
        ({"schema_version": 1, "projects": {"mill": {}}}, "project 'mill', board_id is missing"),
        (one(work_dir="w"), "project 'mill', work_dir must be an absolute path"),
        (one(status="on"), "project 'mill', status must be active or paused"),
        (one(fleet=1), "project 'mill', fleet must be true or false"),
        (
            one(delivery_workflow={"mode": "integration"}),
            "project 'mill', delivery_workflow.base_branch must be a valid",
        ),
        (
            one(delivery_policy={"release_trigger": {"kind": "x"}}),
            "project 'mill', delivery_policy.release_trigger.kind must be ready, manual or scheduled",
        ),
        (one(delivery_policy={"b": 1, "a": 1}), "project 'mill', delivery_policy has unsupported fields: 'a', 'b'"),
        (
            one(delivery_policy={"mode": "batch_pr"}),
            "project 'mill', delivery_policy with all that it inherits contradicts",
        ),
        (one(delivery_policy_group="g"), "project 'mill', delivery_policy_group must name a group of"),
        (
            {**one(), "delivery_policy_groups": {"g": {"final_merge": "auto"}}},
            "delivery policy group 'g', final_merge must be manual",
        ),
        (
            {**one(), "delivery_policy_defaults": {"pr_update": 1}},
            "delivery_policy_defaults.pr_update must be rolling or",
        ),
        (one(board_id="\ud800"), "project 'mill', board_id must be valid Unicode text"),
    ],
)
def test_a_refusal_names_the_place_and_the_repair(document: Json, said: str) -> None:
    text = refused(document)
    assert text.startswith(f"The project registry is not valid: {said}")
    assert text.endswith("then check it with: pursers-registry show")


def test_a_refusal_is_short_and_can_be_sent() -> None:
    assert len(refused({"schema_version": 1, "projects": {"x" * 9000: 1}})) < 500
    assert len(refused(one(delivery_policy={"x" * 9000 + str(i): 1 for i in range(50)}))) < 800
    assert refused({"schema_version": 1, "projects": {"\ud800": PLAIN}}).encode()


def test_a_refusal_quotes_no_value() -> None:
    secret = "prs1.c2VjcmV0"
    documents = [
        *[one(**{field: {"x": secret}}) for field in ("board_id", "status", "fleet", "delivery_policy")],
        one(repository_url=f"https://user:{secret}@git.example/a"),
        one(integration_ref=f" {secret}"),
        one(delivery_policy={"validation": {"test_commands": [f" curl {secret}"]}}),
    ]
    for document in documents:
        assert secret not in refused(document)


def test_the_answer_is_left_alone() -> None:
    answer = stored(json.dumps(FULL))
    before = copy.deepcopy(answer)
    registry.validated(answer)
    assert answer == before


def test_active_boards_are_home_then_active_fleet_projects_as_stored() -> None:
    projects = {
        "a": {**PLAIN, "board_id": "zeta"},
        "b": {**PLAIN, "board_id": "paused", "status": "paused"},
        "c": {**PLAIN, "board_id": "alpha", "fleet": True},
        "d": {**PLAIN, "board_id": "operator", "fleet": False},
        "e": {**PLAIN, "board_id": "zeta"},
        "f": {**PLAIN, "board_id": "home"},
        "g": {**PLAIN, "board_id": "beta"},
    }
    found = registry.validated(stored(json.dumps({"schema_version": 1, "projects": projects})))
    assert registry.active_boards(found, "home") == ["home", "zeta", "alpha", "beta"]
    assert registry.active_boards(found, "beta") == ["beta", "zeta", "alpha", "home"]
    assert registry.active_boards({"schema_version": 1, "projects": {}}, "home") == ["home"]


junk = st.one_of(
    st.sampled_from(ODD),
    st.sampled_from(["main", "dev", "team-1", "refs/heads/main"]),
    st.text(max_size=12),
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3), st.lists, max_leaves=3),
)


def places(value: Json) -> Iterator[tuple[Json, Json]]:
    """Every (container, key) in a document."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def damaged(document: Json, choose: Callable[[st.SearchStrategy[Json]], Json], times: int) -> Json:
    """The document after as many changes, each in one place."""
    document = copy.deepcopy(document)
    for _ in range(times):
        found = list(places(document))
        container, key = found[choose(st.integers(0, len(found) - 1))]
        change = choose(st.sampled_from(["replace", "replace", "remove", "add"]))
        if change == "replace":
            container[key] = choose(junk)
        elif change == "remove":
            del container[key]
        elif isinstance(container, dict):
            container[choose(st.text(max_size=4))] = choose(junk)
    return document


@QUICK
@given(st.data())
def test_any_damage_as_the_bridge(data: st.DataObject) -> None:
    same(damaged(FULL, data.draw, data.draw(st.integers(1, 3))))
