"""What leaves the machine holds no secret: known ones, named ones, and those that look like one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersctl.redaction import Redaction, is_secret, named_secrets
from pursersd.secret import Secret


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("token=abcdef", "token=<secret>"),
        ('"ONBOARD_CENTRAL_TOKEN": "abc def"', '"ONBOARD_CENTRAL_TOKEN": "<secret>"'),
        ("api-key: 'x y', next=1", "api-key: '<secret>', next=1"),
        ("Authorization: Basic", "Authorization: <secret>"),
        ('{"password":"a\\"b","n":1}', '{"password":"<secret>","n":1}'),
        ("eyJhbGciOiJI.eyJzdWIi.sig", "<secret>"),
        ("door prs1.eyJiIjoi done", "door <secret> done"),
        ("Bearer abcdefgh12", "<secret>"),
        ("ONBOARD_CENTRAL_TOKEN_FILE=/home/me/t", "ONBOARD_CENTRAL_TOKEN_FILE=/home/me/t"),
        ("PURSERS_BRIDGE_STATE_DIR=/x board=b", "PURSERS_BRIDGE_STATE_DIR=/x board=b"),
        ('{"name": "token", "value": "door-b/a1b2c3"}', '{"name": "token", "value": "door-b/a1b2c3"}'),
        ("it holds 3 tokens", "it holds 3 tokens"),
    ],
)
def test_texts(text: str, clean: str) -> None:
    assert Redaction().clean(text) == clean


def test_a_known_secret_is_found_wherever_it_stands() -> None:
    assert Redaction([Secret("0paque")]).clean("at/0paque/x and x0paquex") == "at/<secret>/x and x<secret>x"
    assert "0paque" not in repr(Redaction([Secret("0paque")]))


@pytest.mark.parametrize("name", ["ONBOARD_CENTRAL_TOKEN", "MY_SECRET", "DB_PASSWORD", "API_KEY", "x-api-key"])
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)
    assert [secret.fingerprint for secret in named_secrets({name: "a-value"})] == [Secret("a-value").fingerprint]


@pytest.mark.parametrize("name", ["ONBOARD_CENTRAL_TOKEN_FILE", "PATH", "PURSERS_ROLE", "TOKEN_URL"])
def test_other_names(name: str) -> None:
    assert not is_secret(name)
    assert named_secrets({name: "a-value"}) == []


def test_a_value_too_short_to_be_a_secret_is_not_looked_for_everywhere() -> None:
    assert named_secrets({"TOKEN": "1"}) == []


@given(st.dictionaries(st.sampled_from(["token", "password", "board", "url"]), st.text()), st.integers())
def test_json_stays_json(found: dict[str, str], number: int) -> None:
    document = json.dumps({**found, "nested": [found], "n": number})
    clean = json.loads(Redaction().clean(document))
    assert clean.keys() == {*found, "nested", "n"}
    assert all(clean[name] == "<secret>" for name in ("token", "password") if name in found)
