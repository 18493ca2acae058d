"""rules/id_map: abbreviated ids are whole again (central.md §2.5)."""

import hashlib
import json
import re

from hypothesis import given
from hypothesis import strategies as st

from pursersd.rules.id_map import expand_ids


def whole(prefix: str, seed: object) -> str:
    return f"{prefix}-{hashlib.sha256(str(seed).encode()).hexdigest()}"


AI, PR = whole("AI", 1), whole("PR", 2)


def test_ids_are_restored_in_every_string_and_nowhere_else() -> None:
    result = {
        "ok": True,
        "ticket": {
            "claimed_by_agent_id": AI[:11],
            "review_lease": {"reviewer_principal_id": PR[:11]},
            "history": [f"board-reaper:{PR[:11]}", f"x{AI[:11]}", f"{AI[:11]}f", 7, None],
        },
        "id_map": {AI[:11]: AI, PR[:11]: PR},
    }
    before = json.dumps(result)
    found = expand_ids(result)
    assert found["ticket"] == {
        "claimed_by_agent_id": AI,
        "review_lease": {"reviewer_principal_id": PR},
        "history": [f"board-reaper:{PR}", f"x{AI[:11]}", f"{AI[:11]}f", 7, None],
    }
    assert found["id_map"] == result["id_map"]
    assert json.dumps(result) == before


def test_a_table_that_does_not_fit_changes_nothing() -> None:
    other = whole("AI", 3)
    for table in ({AI[:11]: other}, {AI[:11]: PR}, {"AI": AI}, {AI[:11]: AI[:40]}, {AI[:11]: 5}, {}, None, [AI]):
        assert expand_ids({"t": AI[:11], "id_map": table}) == {"t": AI[:11], "id_map": table}
    assert expand_ids({"t": AI[:11]}) == {"t": AI[:11]}


values = st.recursive(
    st.none()
    | st.integers()
    | st.text(max_size=8)
    | st.builds(
        lambda before, prefix, seed, after: f"{before}{whole(prefix, seed)}{after}",
        st.sampled_from(["", "a ", "board://b/agent/", "board-reaper:"]),
        st.sampled_from(["AI", "PR"]),
        st.integers(0, 200),
        st.sampled_from(["", " b", "/x", "."]),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(values, st.integers(11, 20))
def test_abbreviating_as_central_does_and_expanding_gives_the_original(value: object, length: int) -> None:
    text = json.dumps(value)
    ids = set(re.findall(r"\b(?:AI|PR)-[0-9a-f]{64}\b", text))
    short = {full: full[:length] for full in ids}
    if len(set(short.values())) < len(ids):
        return  # Central would choose longer prefixes
    for full, prefix in short.items():
        text = text.replace(full, prefix)
    result = {"ticket": json.loads(text), "id_map": {prefix: full for full, prefix in short.items()}}
    assert expand_ids(result)["ticket"] == value
