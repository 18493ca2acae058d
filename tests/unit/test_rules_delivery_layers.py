"""rules.delivery_layers: the layers of delivery policy add up, or contradict each other, as in the real bridge."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rig.registry_oracle import FULL, INTEGRATION, PLAIN, Json, one, same

QUICK = settings(max_examples=300)


def test_groups() -> None:
    named = one(delivery_policy_group="team")
    same(named, taken=False)
    same({**named, "delivery_policy_groups": {}}, taken=False)
    same({**named, "delivery_policy_groups": {"team": None}}, taken=True)
    same({**named, "delivery_policy_groups": {"team": {"mode": "batch_pr"}}}, taken=False)
    same({**one(), "delivery_policy_groups": {"team": {"mode": "batch_pr"}}}, taken=True)
    for name in ("", ".a", "a b", "ü", "a" * 80, "a" * 81, "a\n"):
        same({**one(), "delivery_policy_groups": {name: {}}})
    for count, taken in ((100, True), (101, False)):
        same({**one(), "delivery_policy_groups": {f"g{i}": None for i in range(count)}}, taken)


@pytest.mark.parametrize(
    ("fields", "taken"),
    [
        ({"delivery_policy": {}}, True),
        ({"delivery_policy": {}, "integration_ref": "refs/heads/main"}, False),
        ({"integration_ref": "refs/heads/main"}, True),
        ({"delivery_policy": {}, "integration_ref": "codex"}, False),
        ({"delivery_policy": {}, "integration_ref": "Codex/x"}, False),
        ({"delivery_policy": {"snapshot_branch_prefix": "main/x"}}, False),
        ({"delivery_policy": {"snapshot_branch_prefix": "mainx"}}, True),
        ({"delivery_policy": {"mapped_base": "dev"}}, False),
        ({"delivery_policy": {"mapped_base": "dev", "final_pr_target": "DEV"}}, True),
        ({"delivery_policy": {"final_pr_target": None}}, False),
        ({"delivery_policy": {"auto_integrate": True}}, False),
        ({"delivery_policy": {"integration_branch": "main"}}, True),
        ({"delivery_policy": {"integration_branch": "codex"}}, True),
        ({"delivery_policy": {"mode": "branch_only"}}, False),
        ({"delivery_policy": {"mode": "branch_only", "final_pr_target": None}}, True),
        ({"delivery_policy": {"mode": "branch_only", "final_pr_target": None, "integration_branch": "Main"}}, False),
        ({"delivery_policy": {"mode": "branch_only", "final_pr_target": None, "integration_branch": "codex/a"}}, False),
        ({"delivery_policy": {"mode": "batch_pr"}}, False),
        ({"delivery_policy": {"mode": "batch_pr", "final_pr_target": None}}, False),
        ({"delivery_policy": {"mode": "batch_pr", "final_pr_target": "Pursers-Integration"}}, False),
        ({"delivery_policy": {"mode": "batch_pr", "final_pr_target": "next"}}, True),
        ({"delivery_policy": {"mode": "batch_pr", "final_pr_target": "codex"}}, False),
        ({"delivery_policy": {}, "delivery_workflow": INTEGRATION}, True),
        ({"delivery_policy": {}, "delivery_workflow": {**INTEGRATION, "auto_integrate": True}}, True),
        (
            {"delivery_policy": {"mode": "per_ticket_pr", "final_pr_target": "main"}, "delivery_workflow": INTEGRATION},
            True,
        ),
        (
            {
                "delivery_policy": {"mode": "per_ticket_pr", "final_pr_target": "main"},
                "delivery_workflow": {**INTEGRATION, "auto_integrate": True},
            },
            False,
        ),
        ({"delivery_policy": {}, "delivery_workflow": {**INTEGRATION, "base_branch": "codex"}}, False),
    ],
)
def test_what_the_layers_add_up_to(fields: dict[str, Json], taken: bool) -> None:
    same(one(**fields), taken)
    same({**one(**{k: v for k, v in fields.items() if k != "delivery_policy"}), "delivery_policy_defaults": None})
    if "delivery_policy" in fields:
        group = {**fields, "delivery_policy_group": "g", "delivery_policy": None}
        same({**one(**group), "delivery_policy_groups": {"g": fields["delivery_policy"]}}, taken)
        everywhere = {k: v for k, v in fields.items() if k != "delivery_policy"}
        same({**one(**everywhere), "delivery_policy_defaults": fields["delivery_policy"]}, taken)


def test_later_layers_override_and_commands_add_up() -> None:
    layers = {
        "delivery_policy_defaults": {"final_pr_target": None},
        "delivery_policy_groups": {"g": {"mode": "branch_only"}},
    }
    same({**one(), **layers}, taken=False)
    same({**one(delivery_policy_group="g"), **layers}, taken=True)
    same({**one(delivery_policy_group="g", delivery_policy={"final_pr_target": "main"}), **layers}, taken=False)
    null, main = {"final_pr_target": None}, {"final_pr_target": "main"}
    own = {"delivery_policy_group": "g", "delivery_policy": {"mode": "branch_only"}}
    same({**one(**own), "delivery_policy_defaults": main, "delivery_policy_groups": {"g": null}}, taken=True)
    same({**one(**own), "delivery_policy_defaults": null, "delivery_policy_groups": {"g": main}}, taken=False)
    twenty = {"validation": {"test_commands": [f"test {i}" for i in range(20)]}}
    for command, taken in (("test 7", True), ("one more", False)):
        own = {"validation": {"test_commands": [command]}}
        same({**one(delivery_policy=own), "delivery_policy_defaults": twenty}, taken)


names = st.sampled_from(
    ["main", "Main", "dev", "next", "codex", "codex/x", "pursers-integration", "s", "refs/heads/main"]
)


def maybe(**fields: st.SearchStrategy[Json]) -> st.SearchStrategy[dict[str, Json]]:
    """Objects with any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


policies = st.none() | maybe(
    mode=st.sampled_from(["per_ticket_pr", "batch_pr", "branch_only"]),
    mapped_base=names,
    integration_branch=names,
    final_pr_target=st.none() | names,
    snapshot_branch_prefix=names,
    auto_integrate=st.booleans(),
    validation=maybe(test_commands=st.lists(st.sampled_from([f"c{i}" for i in range(30)]), max_size=20)),
)
workflows = st.none() | st.builds(
    lambda rest: {**INTEGRATION, **rest},
    maybe(integration_branch=names, base_branch=names, auto_integrate=st.booleans()),
)
projects = st.builds(
    lambda rest: {**PLAIN, **rest},
    maybe(
        integration_ref=names,
        delivery_workflow=workflows,
        delivery_policy=policies,
        delivery_policy_group=st.sampled_from(["g", "h"]),
    ),
)
documents = st.builds(
    lambda found, rest: {"schema_version": 1, "projects": found, **rest},
    st.dictionaries(st.sampled_from(["mill", "kiln"]), projects, max_size=2),
    maybe(
        delivery_policy_defaults=policies, delivery_policy_groups=st.dictionaries(st.sampled_from(["g", "h"]), policies)
    ),
)


@QUICK
@given(documents)
@example(FULL)
def test_any_combination_of_layers_as_the_bridge(document: Json) -> None:
    same(document)
