"""settings: what a conversation's environment means, and what is wrong with it (bridge.md §6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.rules.hosts import profile
from pursersd.secret import Secret
from pursersd.settings import Settings, resolve

TOKEN = "token-" + "a1b2c3d4" * 8


def no_files(path: str) -> str:
    raise FileNotFoundError(2, "No such file or directory", path)


def settings(**environ: str) -> Settings:
    return resolve({"ONBOARD_CENTRAL_TOKEN": TOKEN, **environ}, no_files)


def only_problem(found: Settings) -> str:
    (problem,) = found.problems
    return problem


def test_defaults() -> None:
    assert settings() == Settings(
        url="http://127.0.0.1:8766/mcp",
        token=Secret(TOKEN),
        board="pursers",
        role=None,
        agent_name="pursers-wait-bridge",
        host=profile("codex", None)[0],
        wait_mode="push",
        capabilities=None,
        instance_id=None,
        boards_filter=None,
        resurface_s=600.0,
        scan_interval_s=30.0,
        idle_limit_s=None,
    )


def test_everything_set() -> None:
    instance = "CI-" + "0123456789abcdef" * 4
    found = settings(
        ONBOARD_CENTRAL_URL=" https://central.example:1/mcp ",
        ONBOARD_BOARD_ID=" alpha ",
        PURSERS_ROLE=" Reviewer ",
        ONBOARD_AGENT_NAME="seat",
        ONBOARD_AGENT_INSTANCE="2",
        ONBOARD_CENTRAL_INSTANCE_ID=f" {instance} ",
        PURSERS_HOST="Zed",
        PURSERS_WAIT_MODE=" POLL ",
        PURSERS_BOARDS=" registry ",
        PURSERS_BACKLOG_RESURFACE_INTERVAL_S="1.5",
        PURSERS_BACKLOG_SCAN_INTERVAL_S="2",
        PURSERS_KEEPALIVE_IDLE_LIMIT_S="3",
    )
    assert (found.problems, found.notes) == ((), ())
    assert (found.url, found.board, found.role) == ("https://central.example:1/mcp", "alpha", "reviewer")
    assert (found.agent_name, found.instance_id, found.host.platform) == ("seat-2", instance, "zed")
    assert (found.wait_mode, found.boards_filter) == ("poll", "registry")
    assert (found.resurface_s, found.scan_interval_s, found.idle_limit_s) == (1.5, 2.0, 3.0)


@pytest.mark.parametrize("role", ["worker", "reviewer", "orchestrator", "coordinator"])
def test_roles(role: str) -> None:
    found = settings(PURSERS_ROLE=role)
    assert (found.role, found.problems) == (role, ())


def test_a_name_may_have_80_characters_and_push_is_no_surprise() -> None:
    found = settings(ONBOARD_AGENT_NAME="x" * 47, ONBOARD_AGENT_INSTANCE="y" * 32, PURSERS_WAIT_MODE="push")
    assert (len(found.agent_name), found.problems, found.notes) == (80, (), ())


NAME = "letters, digits, dots, underscores, or hyphens"


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"PURSERS_ROLE": "boss"}, "PURSERS_ROLE must be worker, reviewer, orchestrator, or coordinator"),
        ({"ONBOARD_AGENT_NAME": ""}, f"ONBOARD_AGENT_NAME must contain 1-80 {NAME}"),
        ({"ONBOARD_AGENT_NAME": " x"}, f"ONBOARD_AGENT_NAME must contain 1-80 {NAME}"),
        ({"ONBOARD_AGENT_NAME": "x\n"}, f"ONBOARD_AGENT_NAME must contain 1-80 {NAME}"),
        ({"ONBOARD_AGENT_NAME": "x" * 81}, f"ONBOARD_AGENT_NAME must contain 1-80 {NAME}"),
        ({"ONBOARD_AGENT_INSTANCE": "a b"}, f"ONBOARD_AGENT_INSTANCE must contain 1-32 {NAME}"),
        ({"ONBOARD_AGENT_INSTANCE": "x" * 33}, f"ONBOARD_AGENT_INSTANCE must contain 1-32 {NAME}"),
        (
            {"ONBOARD_AGENT_NAME": "x" * 60, "ONBOARD_AGENT_INSTANCE": "y" * 20},
            "resolved agent name must not exceed 80 characters",
        ),
        ({"ONBOARD_BOARD_ID": "a/b"}, f"ONBOARD_BOARD_ID must contain 1-80 {NAME}"),
        (
            {"ONBOARD_CENTRAL_INSTANCE_ID": "CI-1"},
            "ONBOARD_CENTRAL_INSTANCE_ID must be CI- and 64 lower-case hex digits",
        ),
        ({"ONBOARD_CENTRAL_URL": "127.0.0.1:8766"}, "ONBOARD_CENTRAL_URL must be an http or https URL"),
        ({"ONBOARD_CENTRAL_URL": "ftp://h/mcp"}, "ONBOARD_CENTRAL_URL must be an http or https URL"),
        ({"ONBOARD_CENTRAL_URL": "http:///mcp"}, "ONBOARD_CENTRAL_URL must be an http or https URL"),
        ({"ONBOARD_CENTRAL_URL": "http://[::1/mcp"}, "ONBOARD_CENTRAL_URL must be an http or https URL"),
        ({"ONBOARD_CENTRAL_URL": "http://h:99999/mcp"}, "ONBOARD_CENTRAL_URL must be an http or https URL"),
        ({"ONBOARD_CENTRAL_URL": "http://h /mcp"}, "ONBOARD_CENTRAL_URL must be an http or https URL"),
        ({"ONBOARD_CENTRAL_URL": "http://me:pw@h/mcp"}, "ONBOARD_CENTRAL_URL must not include user information"),
        ({"PURSERS_TIER_MAX": "4"}, "PURSERS_TIER_MAX must be 1, 2, or 3"),
        ({"PURSERS_CAN_WORK": "maybe"}, "PURSERS_CAN_WORK must be true or false"),
        ({"PURSERS_CAN_REVIEW": "2"}, "PURSERS_CAN_REVIEW must be true or false"),
    ],
)
def test_problems_name_the_variable_the_rule_and_what_to_do(environ: dict[str, str], words: str) -> None:
    problem = only_problem(settings(**environ))
    rule, _, advice = problem.partition(". ")
    assert rule == words
    assert advice.endswith(".")
    assert any(verb in advice for verb in ("Set it", "Shorten"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PURSERS_WAIT_MODE", "pull"),
        ("PURSERS_HOST", "mine"),
        ("PURSERS_HOST_TIMEOUT_S", "1"),
        ("PURSERS_BACKLOG_RESURFACE_INTERVAL_S", "0"),
        ("PURSERS_BACKLOG_SCAN_INTERVAL_S", "nan"),
        ("PURSERS_KEEPALIVE_IDLE_LIMIT_S", "inf"),
        ("PURSERS_KEEPALIVE_IDLE_LIMIT_S", "soon"),
    ],
)
def test_a_value_that_is_ignored_is_noted_and_stops_nothing(name: str, value: str) -> None:
    found = settings(**{name: value})
    assert found.problems == ()
    (note,) = found.notes
    assert note.startswith(name)
    plain = settings()
    assert (found.wait_mode, found.resurface_s, found.scan_interval_s, found.idle_limit_s) == (
        plain.wait_mode,
        plain.resurface_s,
        plain.scan_interval_s,
        plain.idle_limit_s,
    )


def test_a_refused_url_is_kept_only_without_its_secret() -> None:
    assert settings(ONBOARD_CENTRAL_URL="http://me:pw@h:1/mcp").url == "http://h:1/mcp"
    assert settings(ONBOARD_CENTRAL_URL="prs1.secret").url == ""


def test_blank_variables_are_unset_ones() -> None:
    blank = dict.fromkeys(
        [
            "ONBOARD_CENTRAL_URL",
            "ONBOARD_BOARD_ID",
            "ONBOARD_CENTRAL_TOKEN_FILE",
            "ONBOARD_CENTRAL_INSTANCE_ID",
            "PURSERS_ROLE",
            "PURSERS_HOST",
            "PURSERS_HOST_TIMEOUT_S",
            "PURSERS_WAIT_MODE",
            "PURSERS_BOARDS",
            "PURSERS_TIER_MAX",
            "PURSERS_CAN_WORK",
            "PURSERS_BACKLOG_SCAN_INTERVAL_S",
        ],
        "  ",
    )
    assert settings(**blank, ONBOARD_AGENT_INSTANCE="") == settings()


def test_several_problems_are_all_told() -> None:
    found = resolve({"PURSERS_ROLE": "x", "ONBOARD_AGENT_NAME": "", "PURSERS_TIER_MAX": "9"}, no_files)
    assert len(found.problems) == 4
    assert (found.role, found.agent_name, found.token) == (None, "pursers-wait-bridge", None)


VARIABLES = [
    "ONBOARD_CENTRAL_URL",
    "ONBOARD_CENTRAL_TOKEN",
    "ONBOARD_CENTRAL_TOKEN_FILE",
    "ONBOARD_BOARD_ID",
    "ONBOARD_AGENT_NAME",
    "ONBOARD_AGENT_INSTANCE",
    "ONBOARD_CENTRAL_INSTANCE_ID",
    "PURSERS_ROLE",
    "PURSERS_WAIT_MODE",
    "PURSERS_HOST_TIMEOUT_S",
    "PURSERS_TIER_MAX",
    "PURSERS_CAN_WORK",
    "PURSERS_REQUIRE_TOKEN_MATCH",
    "PURSERS_BOARD_CONNECTOR_TOKEN",
    "PURSERS_BACKLOG_SCAN_INTERVAL_S",
]
values = st.sampled_from(["", "1", "x", TOKEN, f"Bearer {TOKEN}", f"http://{TOKEN}@h/mcp", f" {TOKEN}\n"]) | st.text()


@given(st.dictionaries(st.sampled_from(VARIABLES), values), st.sampled_from(["", TOKEN, f"{TOKEN}\n", f"a {TOKEN}"]))
def test_no_text_ever_quotes_a_value(environ: dict[str, str], file: str) -> None:
    found = resolve(environ, lambda _path: file)
    texts = " ".join((*found.problems, *found.notes, repr(found.token), found.url))
    assert TOKEN not in texts
    if not found.problems:
        assert found.token is not None
