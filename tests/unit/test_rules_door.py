"""rules/door: the bridge's own decoder is the oracle for every string, valid or not."""

import json

import door_state
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pursersd.errors import DoorsError
from pursersd.rules.door import SEAT_ROLES, Door, check_url, decode
from rig.doors import URL, packed, segment, token

BAD = [
    ("", "door must use the prs1.<base64url-json> format"),
    ("prs1", "door must use the prs1.<base64url-json> format"),
    ("prs1.", "door must use the prs1.<base64url-json> format"),
    ("prs1.a.b", "door must use the prs1.<base64url-json> format"),
    ("PRS1." + segment("{}"), "door must use the prs1.<base64url-json> format"),
    (" " + packed(), "door must use the prs1.<base64url-json> format"),
    ("prs1.e", "door is not valid base64url JSON"),
    ("prs1.é", "door is not valid base64url JSON"),
    ("prs1." + segment("{"), "door is not valid base64url JSON"),
    ("prs1." + segment(b"\xff\xff"), "door is not valid base64url JSON"),
    ("prs1." + segment("[]"), "door payload must be a JSON object"),
    ("prs1." + segment("null"), "door payload must be a JSON object"),
    (packed() + "=", "door string payload is not valid base64url"),
    (packed() + "\n", "door string payload is not valid base64url"),
    (packed(x="y"), "door string JSON must contain exactly u, b, r, and t"),
    ("prs1." + segment("{}"), "door string JSON must contain exactly u, b, r, and t"),
    (packed(u=""), "door string fields must be non-empty strings"),
    (packed(b=1), "door string fields must be non-empty strings"),
    (packed(r=["worker"]), "door string fields must be non-empty strings"),
    (packed(t="a"), "door string contains a malformed token"),
    (packed(t="a.b"), "door string contains a malformed token"),
    (packed(t="a.b.c.d"), "door string contains a malformed token"),
    (packed(t=token() + " "), "door string contains a malformed token"),
    (packed(t=token(kid=5)), "door string contains a malformed token"),
    (packed(t=token(kid=None)), "door token must contain kid and integer exp"),
    (packed(t=token(kid="")), "door token must contain kid and integer exp"),
    (packed(t=token(exp=None)), "door token must contain kid and integer exp"),
    (packed(t=token(exp=1.5)), "door token must contain kid and integer exp"),
    (packed(t=token(exp=True)), "door token must contain kid and integer exp"),
    (packed(t=token(exp="1")), "door token must contain kid and integer exp"),
    (packed(t=token(pursers_board="c")), "door board does not match its token board restriction"),
    (packed(b=" b", t=token(pursers_board="b")), "door board does not match its token board restriction"),
    (packed(t=token(kid=" ")), "door token header must contain kid"),
    (packed(u=" "), "door fields must be non-empty strings"),
    (packed(r="admin"), "door role is not supported"),
    (packed(r="coordinator"), "door role is not supported"),
]


def ours(text: str) -> tuple[object, ...] | str:
    try:
        door = decode(text, roles=SEAT_ROLES)
    except DoorsError as refused:
        return str(refused)
    return (door.url, door.board, door.role, door.token.reveal(), door.kid, door.expires)


def the_bridges(text: str) -> tuple[object, ...] | str:
    try:
        found = door_state.decode_door(text)
    except ValueError as refused:
        return str(refused)
    return tuple(found[name] for name in ("u", "b", "r", "t", "kid", "exp"))


def test_a_door_is_decoded() -> None:
    bearer = token("k-1", 1900000000, pursers_board="b")
    door = decode(packed(f" {URL}\n", "b", " Reviewer ", bearer))
    assert (door.url, door.board, door.role, door.kid, door.expires) == (URL, "b", "reviewer", "k-1", 1900000000)
    assert door.token.reveal() == bearer
    assert (door.joined_at, door.seat_names_used) == ("", ())


@pytest.mark.parametrize(("text", "words"), BAD)
def test_a_bad_string_is_refused_in_the_words_of_the_bridge(text: str, words: str) -> None:
    assert ours(text) == words == the_bridges(text)


def test_a_named_door_is_taken_where_the_bridge_refuses_it() -> None:
    text = packed(r="named")
    assert decode(text).role == "named"
    assert the_bridges(text) == "door role is not supported"


@pytest.mark.parametrize(
    "text",
    [
        "prs1." + segment("[" * 100_000),
        packed(t=f"{segment('[' * 100_000)}.e30.e30"),
        packed(t="\ud800.e30.e30"),
        "prs1.\ud800",
        packed(t=f"{segment(json.dumps({'kid': 'k', 'alg': 'none', 'b64': False}))}..e30"),
    ],
)
def test_what_breaks_the_decoder_of_the_bridge_is_refused_too(text: str) -> None:
    with pytest.raises(DoorsError):
        decode(text)


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
texts = st.sampled_from(["", " ", "b", "worker", " Reviewer", "named", URL, "a.b.c", token(), token(pursers_board="c")])
tokens = st.builds(token, kid=scalars, exp=scalars, pursers_board=scalars) | texts
fields = st.dictionaries(st.sampled_from("ubrtx"), scalars | texts | tokens, max_size=5)
payloads = fields | scalars | st.builds(dict, u=texts, b=texts, r=texts, t=tokens)
strings = (
    st.text(max_size=40)
    | st.text("prs1.eyJ0IiwK-_=", max_size=40)
    | st.binary(max_size=40).map(lambda raw: "prs1." + segment(raw))
    | payloads.map(lambda payload: "prs1." + segment(json.dumps(payload)))
)


@given(strings)
@example(packed())
def test_no_string_is_judged_otherwise_than_by_the_bridge(text: str) -> None:
    assert ours(text) == the_bridges(text)


@pytest.mark.parametrize(
    "url",
    [
        URL,
        "https://localhost/mcp",
        "http://LOCALHOST.:1/mcp",
        "http://[::1]:80/mcp",
        "http://127.9.9.9/mcp",
    ],
)
def test_a_door_may_lead_to_this_machine(url: str) -> None:
    check_url(url, allow_remote=False)
    door_state.validate_url(url, allow_remote=False)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://localhost/", "door URL must be an http or https URL"),
        ("localhost:8766", "door URL must be an http or https URL"),
        ("http:///mcp", "door URL must be an http or https URL"),
        ("http://me@localhost/mcp", "door URL must not include user information"),
        ("http://me:pw@localhost/mcp", "door URL must not include user information"),
        ("https://central.example/mcp", "remote door URL requires --allow-remote confirmation"),
        ("http://10.0.0.1/mcp", "remote door URL requires --allow-remote confirmation"),
        ("http://localhost.example/mcp", "remote door URL requires --allow-remote confirmation"),
    ],
)
def test_a_url_is_refused_in_the_words_of_the_bridge(url: str, words: str) -> None:
    for check in (check_url, door_state.validate_url):
        with pytest.raises((DoorsError, ValueError)) as caught:
            check(url, allow_remote=False)
        assert str(caught.value) == words


@pytest.mark.parametrize("url", ["http://[::1", "http://localhost:99999/", "http://localhost:0/", "http://local host/"])
def test_a_url_that_would_only_fail_later_is_refused_now(url: str) -> None:
    with pytest.raises(DoorsError, match="door URL must be an http or https URL"):
        check_url(url, allow_remote=True)


def test_a_remote_url_can_be_confirmed() -> None:
    check_url("https://central.example/mcp", allow_remote=True)


@pytest.mark.parametrize(
    ("scope", "role"),
    [
        ("board:read board:write", "worker"),
        ("board:read board:review", "reviewer"),
        ("board:read board:coordinate", "coordinator"),
        ("board:read board:write board:review board:coordinate", "worker"),
        ("board:read board:review board:coordinate", "reviewer"),
        ("board:read", "worker"),
        (7, "worker"),
    ],
)
def test_a_token_tells_what_its_holder_may_be(scope: object, role: str) -> None:
    assert decode(packed(r="named", t=token(scope=scope))).natural_role == role


def test_only_a_token_for_its_board_is_confined_to_it() -> None:
    assert decode(packed(t=token(pursers_board="b"))).is_confined
    assert not decode(packed()).is_confined


def test_a_door_does_not_show_its_token() -> None:
    door = decode(packed())
    assert door.token.reveal() not in repr(door)
    assert isinstance(door, Door)
