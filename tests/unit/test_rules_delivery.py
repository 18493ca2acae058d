"""rules.delivery: every field takes exactly what the real bridge takes."""

import json
from zoneinfo import ZoneInfoNotFoundError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pursersd.rules import delivery
from rig.registry_oracle import ACTIVATION, INTEGRATION, REVISION, SCHEDULED, Json, one, refusal, same, stored

QUICK = settings(max_examples=300)


@pytest.mark.parametrize(
    ("branch", "taken"),
    [
        *[
            (name, True)
            for name in (
                "dev",
                "a/b",
                "a.b",
                "ü",
                "lock",
                "a.locks",
                "@a",
                "a@",
                "refs",
                "a-",
                "refsx/a",
                "{",
                "x" * 200,
            )
        ],
        *[
            (name, False)
            for name in ("", "@", "-a", "/a", "a/", "a.", ".a", "a/.b", "a.lock", "a.lock/b", "refs/heads/a")
        ],
        *[
            (name, False)
            for name in ("a..b", "a@{b", "a b", "a\x00", "a\x7f", "a~", "a^", "a:", "a?", "a*", "a[", "a\\")
        ],
        *[(name, False) for name in ("a//b", "a\n", "x" * 201, None, 1, ["a"])],
    ],
)
def test_branches(branch: Json, taken: bool) -> None:
    same(one(delivery_workflow={**INTEGRATION, "base_branch": branch}), taken)
    same(one(delivery_policy={"mode": "branch_only", "final_pr_target": None, "integration_branch": branch}), taken)


@pytest.mark.parametrize(
    "prefix", ["s", "@", "a.", "s/", "", "x" * 192, "x" * 193, None, "-a", "refs/x", "a.lock", "main", "Main"]
)
def test_snapshot_prefixes(prefix: Json) -> None:
    same(one(delivery_policy={"snapshot_branch_prefix": prefix}))


@pytest.mark.parametrize(
    ("schedule", "taken"),
    [
        *[
            (f"{item} * * * *", True)
            for item in ("*", "0", "59", "007", "1,2,3", "1-5", "5-5", "*/1", "*/60", "1-9/2", "3/4")
        ],
        *[
            (f"{item} * * * *", False)
            for item in ("60", "5-1", "1-60", "*/0", "*/61", "*/", "/5", "1,", ",1", "-1", "1-")
        ],
        *[(f"{item} * * * *", False) for item in ("1-2-3", "*/1/1", "?", "*-5", "x", "٣", "**", "1.0", "9" * 5000)],
        *[("0" * digits + " * * * *", True) for digits in (100, 4300)],
        *[("0" * digits + " * * * *", False) for digits in (4301,)],
        *[(text, True) for text in ("* 23 1 1 0", "* 0 31 12 7", "*\t* *  * *", "*\u00a0* * * *")],
        *[(text, False) for text in ("* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 0 *", "* * * 13 *", "* * * * 8")],
        *[(text, False) for text in ("* * * *", "* * * * * *", " * * * * *", "* * * * * ", "", None, 5, ["* * * * *"])],
    ],
)
def test_schedules(schedule: Json, taken: bool) -> None:
    same(one(delivery_policy={"release_trigger": {**SCHEDULED, "schedule": schedule}}), taken)


@pytest.mark.parametrize(
    "zone",
    [
        "UTC",
        "Europe/Berlin",
        "Europe",
        "Nowhere/Town",
        "utc ",
        "",
        "../UTC",
        "/etc/passwd",
        "a\x00",
        "x" * 9000,
        ".",
        None,
        1,
        "\ud800",
    ],
)
def test_time_zones(zone: Json) -> None:
    same(one(delivery_policy={"release_trigger": {**SCHEDULED, "timezone": zone}}))


@pytest.mark.parametrize("error", [IsADirectoryError, ZoneInfoNotFoundError, ValueError])
def test_whatever_the_zone_database_says_is_a_refusal(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def unknown(name: str) -> None:
        raise error(name)

    monkeypatch.setattr(delivery, "ZoneInfo", unknown)
    text = refusal(stored(json.dumps(one(delivery_policy={"release_trigger": SCHEDULED}))))
    assert "delivery_policy.release_trigger.timezone must be an IANA time zone that this machine knows" in text


@pytest.mark.parametrize(
    ("trigger", "taken"),
    [
        ({"kind": "ready"}, True),
        ({"kind": "manual", "timezone": None, "schedule": None}, True),
        ({"kind": "ready", "timezone": "UTC"}, False),
        ({"kind": "ready", "schedule": "* * * * *"}, False),
        ({"kind": "scheduled", "timezone": "UTC"}, False),
        ({"kind": "scheduled", "schedule": "* * * * *", "timezone": None}, False),
        ({"kind": ["ready"]}, False),
        ({"kind": "never"}, False),
        ({}, False),
        (None, False),
        ({**SCHEDULED, "jitter": 1}, False),
    ],
)
def test_release_triggers(trigger: Json, taken: bool) -> None:
    same(one(delivery_policy={"release_trigger": trigger}), taken)


@pytest.mark.parametrize(
    ("validation", "taken"),
    [
        ({}, True),
        ({"test_commands": []}, True),
        ({"test_commands": ["a", "b", "a", "\x7f", "x" * 500]}, True),
        ({"test_commands": ["x" * 501]}, False),
        ({"test_commands": ["a\nb"]}, False),
        ({"test_commands": [" a"]}, False),
        ({"test_commands": [""]}, False),
        ({"test_commands": [["a"]]}, False),
        ({"test_commands": "a"}, False),
        ({"test_commands": ["a"] * 20}, True),
        ({"test_commands": ["a"] * 21}, False),
        *[({"required_reviewers": number}, True) for number in (1, 10)],
        *[({"required_reviewers": number}, False) for number in (0, 11, True, 1.0, "1", None)],
        *[({name: True}, True) for name in ("independent_review", "require_upstream_policies")],
        *[({"independent_review": value}, False) for value in (False, 1, None, "true")],
        ({"other": 1}, False),
        (None, False),
        ([], False),
    ],
)
def test_validations(validation: Json, taken: bool) -> None:
    same(one(delivery_policy={"validation": validation}), taken)


@pytest.mark.parametrize(
    ("workflow", "taken"),
    [
        (None, True),
        ({"mode": "direct"}, True),
        ({"mode": "direct", "auto_integrate": False}, False),
        (INTEGRATION, True),
        ({**INTEGRATION, "auto_integrate": True, "integration_branch": "dev"}, True),
        ({"mode": "integration"}, False),
        ({**INTEGRATION, "integration_branch": None}, False),
        ({**INTEGRATION, "integration_branch": "MAIN"}, False),
        ({**INTEGRATION, "base_branch": "straße", "integration_branch": "STRASSE"}, False),
        ({**INTEGRATION, "base_branch": "Pursers-Integration"}, False),
        ({**INTEGRATION, "auto_integrate": 1}, False),
        ({**INTEGRATION, "collection_paused": None}, False),
        ({**INTEGRATION, "extra": 1}, False),
        ({"mode": ["direct"]}, False),
        ({"mode": "other"}, False),
        ({}, False),
        ([], False),
    ],
)
def test_workflows(workflow: Json, taken: bool) -> None:
    same(one(delivery_workflow=workflow), taken)
    same({**one(), "delivery_defaults": workflow}, taken)


@pytest.mark.parametrize(
    ("change", "taken"),
    [
        ({}, True),
        ({"schema_version": True}, True),
        ({"schema_version": 1.0}, True),
        ({"schema_version": 2}, False),
        ({"schema_version": "1"}, False),
        ({"state": "Active"}, False),
        ({"policy_revision": REVISION.upper()}, False),
        ({"policy_revision": REVISION[1:]}, False),
        ({"policy_revision": REVISION + "\n"}, False),
        ({"activation_id": ":x"}, False),
        ({"activation_id": "x" * 128}, True),
        ({"activation_id": "x" * 129}, False),
        ({"activation_id": "x\n"}, False),
        ({"more": 1}, False),
    ],
)
def test_activations(change: dict[str, Json], taken: bool) -> None:
    same(one(delivery_policy_activation={**ACTIVATION, **change}), taken)
    for missing in ACTIVATION:
        same(one(delivery_policy_activation={k: v for k, v in ACTIVATION.items() if k != missing}), taken=False)


@QUICK
@given(st.text(alphabet="0123456789*/,- ", max_size=14))
def test_any_schedule_as_the_bridge(schedule: str) -> None:
    same(one(delivery_policy={"release_trigger": {**SCHEDULED, "schedule": f"{schedule} * * *"}}))


@QUICK
@given(st.text(alphabet="ab./@{-lock~\\refs", max_size=10))
def test_any_branch_as_the_bridge(branch: str) -> None:
    same(one(delivery_workflow={**INTEGRATION, "base_branch": branch}))
    same(one(delivery_policy={"snapshot_branch_prefix": branch}))
