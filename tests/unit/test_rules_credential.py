"""rules/credential: which token counts (bridge.md §6.1, §6.3) and that it does not show."""

import copy
import hashlib
import json
import pickle

import msgspec
import pytest

from pursersd.rules.credential import resolve_token
from pursersd.rules.environment import Reader
from pursersd.secret import Secret

TOKEN, OTHER = "tok.en-1", "tok.en-2"


def resolved(file: str | Exception | None = None, **environ: str) -> tuple[str | None, list[str], list[str]]:
    """The token, the problems and the paths that were read."""
    paths: list[str] = []

    def read_file(path: str) -> str:
        paths.append(path)
        if isinstance(file, str):
            return file
        raise file or FileNotFoundError(2, "No such file or directory", path)

    found = Reader(environ)
    token = resolve_token(found, read_file)
    return (token.reveal() if token else None), found.problems, paths


def test_a_variable_alone_is_trimmed() -> None:
    assert resolved(ONBOARD_CENTRAL_TOKEN=f" {TOKEN}\n") == (TOKEN, [], [])


def test_a_file_alone_is_trimmed() -> None:
    assert resolved(f" {TOKEN}\n", ONBOARD_CENTRAL_TOKEN_FILE=" /t ") == (TOKEN, [], ["/t"])


@pytest.mark.parametrize(
    ("path", "home", "read"),
    [
        ("~/t", "/home/me", "/home/me/t"),
        ("~/t", "/home/me/", "/home/me/t"),
        ("~", "/home/me", "/home/me"),
        ("~other/t", "/home/me", "~other/t"),
        ("~/t", "", "~/t"),
        ("a/~/t", "/home/me", "a/~/t"),
    ],
)
def test_the_home_of_the_environment_is_expanded(path: str, home: str, read: str) -> None:
    assert resolved(TOKEN, ONBOARD_CENTRAL_TOKEN_FILE=path, HOME=home) == (TOKEN, [], [read])


def test_file_and_variable_must_agree_unless_the_variable_is_allowed_to_win() -> None:
    both = {"ONBOARD_CENTRAL_TOKEN": TOKEN, "ONBOARD_CENTRAL_TOKEN_FILE": "/t"}
    assert resolved(TOKEN, **both)[0] == TOKEN
    token, (problem,), _ = resolved(OTHER, **both)
    assert token is None
    assert problem.startswith("split identity: ONBOARD_CENTRAL_TOKEN and ONBOARD_CENTRAL_TOKEN_FILE differ. ")
    assert resolved(OTHER, **both, PURSERS_ALLOW_ENV_TOKEN="1") == (TOKEN, [], ["/t"])
    assert resolved(OTHER, ONBOARD_CENTRAL_TOKEN_FILE="/t", PURSERS_ALLOW_ENV_TOKEN="1")[0] == OTHER


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (None, "ONBOARD_CENTRAL_TOKEN_FILE is not readable (No such file or directory). "),
        (PermissionError(13, "Permission denied"), "ONBOARD_CENTRAL_TOKEN_FILE is not readable (Permission denied). "),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), "ONBOARD_CENTRAL_TOKEN_FILE is not readable. "),
        (" \n", "ONBOARD_CENTRAL_TOKEN_FILE is empty. "),
    ],
)
def test_a_bad_file_is_a_problem_even_beside_a_good_variable(file: str | Exception | None, words: str) -> None:
    for more in ({}, {"ONBOARD_CENTRAL_TOKEN": TOKEN, "PURSERS_ALLOW_ENV_TOKEN": "1"}):
        token, (problem,), _ = resolved(file, ONBOARD_CENTRAL_TOKEN_FILE="/secret-path", **more)
        assert token is None
        assert problem.startswith(words)
        assert "secret-path" not in problem


def test_no_token() -> None:
    for environ in ({}, {"ONBOARD_CENTRAL_TOKEN": " "}):
        token, (problem,), _ = resolved(**environ)
        assert token is None
        assert problem.startswith("ONBOARD_CENTRAL_TOKEN is not set. ")


@pytest.mark.parametrize("bad", ["a b", "a\nb", "tök", "Bearer x"])
def test_what_cannot_be_a_header_is_refused_by_name(bad: str) -> None:
    token, (problem,), _ = resolved(ONBOARD_CENTRAL_TOKEN=bad)
    assert token is None
    assert problem.startswith("ONBOARD_CENTRAL_TOKEN must hold one token")
    assert resolved(bad, ONBOARD_CENTRAL_TOKEN_FILE="/t")[1][0].startswith("ONBOARD_CENTRAL_TOKEN_FILE must hold")


DIGEST = hashlib.sha256(TOKEN.encode()).hexdigest()
DIFFER = "split identity: wait bridge and board connector tokens differ. "
HIDDEN = "connector token not visible to the bridge process; see Codex env forwarding. "


@pytest.mark.parametrize(
    ("connector", "words"),
    [
        ({"PURSERS_BOARD_CONNECTOR_TOKEN": TOKEN}, None),
        ({"PURSERS_BOARD_CONNECTOR_TOKEN_SHA256": DIGEST}, None),
        ({"PURSERS_BOARD_CONNECTOR_TOKEN_SHA256": f" {DIGEST.upper()} "}, None),
        ({"PURSERS_BOARD_CONNECTOR_TOKEN": OTHER, "PURSERS_BOARD_CONNECTOR_TOKEN_SHA256": DIGEST}, None),
        ({"PURSERS_BOARD_CONNECTOR_TOKEN": TOKEN, "PURSERS_BOARD_CONNECTOR_TOKEN_SHA256": "0" * 64}, DIFFER),
        ({"PURSERS_BOARD_CONNECTOR_TOKEN": OTHER}, DIFFER),
        ({}, HIDDEN),
    ],
)
def test_the_connector_must_use_the_same_token_where_that_is_required(
    connector: dict[str, str], words: str | None
) -> None:
    environ = {"ONBOARD_CENTRAL_TOKEN": TOKEN, **connector}
    assert resolved(**environ)[0] == TOKEN
    token, problems, _ = resolved(**environ, PURSERS_REQUIRE_TOKEN_MATCH="1")
    assert token == (None if words else TOKEN)
    assert [problem.startswith(words or "-") for problem in problems] == ([True] if words else [])


def test_a_missing_token_cannot_match() -> None:
    for connector in ({"PURSERS_BOARD_CONNECTOR_TOKEN": TOKEN}, {"PURSERS_BOARD_CONNECTOR_TOKEN_SHA256": DIGEST}):
        assert resolved(PURSERS_REQUIRE_TOKEN_MATCH="1", **connector)[1][0].startswith(DIFFER)


# --- the secret -----------------------------------------------------------------------------------------------------

SECRET = Secret("s3cr3t-value")


@pytest.mark.parametrize(
    "shown", [repr(SECRET), str(SECRET), f"{SECRET}", f"{SECRET:>40}", f"{SECRET!r}", f"{[SECRET]}"]
)
def test_it_shows_its_fingerprint_and_nothing_else(shown: str) -> None:
    assert "s3cr3t" not in shown
    assert hashlib.sha256(b"s3cr3t-value").hexdigest()[:12] in shown


def test_it_is_not_written_anywhere() -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="secret"):
            pickle.dumps(SECRET, protocol)
    with pytest.raises(TypeError):
        copy.deepcopy(SECRET)
    with pytest.raises(TypeError):
        json.dumps(SECRET)
    with pytest.raises(TypeError):
        msgspec.json.encode(SECRET)
    assert not hasattr(SECRET, "__dict__")


def test_it_is_equal_by_value() -> None:
    assert Secret("a") == Secret("a")
    assert hash(Secret("a")) == hash(Secret("a"))
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert Secret("a").reveal() == "a"
