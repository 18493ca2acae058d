"""The shim's early answers are the daemon's own."""

import json

from bench.snapshot import SNAPSHOT, current_answers, rendered

from rig.daemon import Home


def test_the_packaged_snapshot_is_what_the_daemon_says(home: Home) -> None:
    home.start_daemon()
    answers = current_answers(home)
    assert json.loads(SNAPSHOT.read_text(encoding="utf-8")) == answers, "run: make snapshot"
    assert SNAPSHOT.read_text(encoding="utf-8") == rendered(answers), "run: make snapshot"
