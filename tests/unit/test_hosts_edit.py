"""No edit is made that changes anything else, whatever an editor does."""

import pytest

from pursersctl import hosts_edit, hosts_jsonc
from pursersctl.hosts_edit import Edit
from pursersctl.hosts_text import TooClever

KEYS = ("servers", "pursers")


def test_an_editor_that_changes_something_else_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts_jsonc, "put", lambda *_: '{"other": 2, "servers": {"pursers": 1}}')
    with pytest.raises(TooClever, match="pursers cannot be changed alone"):
        hosts_edit.changed("json", '{"other": 1}', [Edit(KEYS, 1)])


def test_a_text_whose_end_would_change_is_refused() -> None:
    """The last line of such a text has no end, and would get one."""
    with pytest.raises(TooClever, match="cannot be changed alone"):
        hosts_edit.changed("yaml", "instructions: |\n  text", [Edit(KEYS, {"cmd": "/x"})])


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(TooClever, match="servers is not an object"):
        hosts_edit.changed("json", '{"servers": 1}', [Edit(KEYS, 1)])


def test_undoing_brings_back_what_was_there_in_the_right_order() -> None:
    data = {"servers": {"pursers": {"command": "uvx", "args": ["x"]}}}
    edits = [Edit((*KEYS, "command"), "/shim"), Edit((*KEYS, "args"), []), Edit((*KEYS, "trust"), True)]
    assert hosts_edit.undone(data, edits) == [
        Edit((*KEYS, "trust"), gone=True),
        Edit((*KEYS, "args"), ["x"]),
        Edit((*KEYS, "command"), "uvx"),
    ]
    assert data == {"servers": {"pursers": {"command": "uvx", "args": ["x"]}}}


def test_undoing_takes_away_what_was_made_on_the_way() -> None:
    data = {"servers": {"pursers": {"command": "uvx"}}}
    edits = [Edit((*KEYS, "env", "A"), "b"), Edit((*KEYS, "env", "C"), "d")]
    text = hosts_edit.changed("json", '{"servers": {"pursers": {"command": "uvx"}}}', edits)
    undone = hosts_edit.undone(data, edits)
    assert undone == [Edit((*KEYS, "env", "C"), gone=True), Edit((*KEYS, "env"), gone=True)]
    assert hosts_edit.load("json", hosts_edit.changed("json", text, undone)) == data


def test_what_would_be_made_for_a_value() -> None:
    assert hosts_edit.outermost_missing({}, KEYS) == ("servers",)
    assert hosts_edit.outermost_missing({"servers": {}}, KEYS) == KEYS
    assert hosts_edit.outermost_missing({"servers": {"pursers": 1}}, KEYS) == KEYS
