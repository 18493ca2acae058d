"""rules/bridge_files: where the doors and the statistics of a conversation are."""

import os

import pytest

from pursersd.rules.bridge_files import stats_path

USER = {"HOME": "/home/ann"}


@pytest.mark.parametrize(
    ("environ", "home", "path"),
    [
        (USER, None, "/home/ann/.pursers/wait-bridge/bridge-stats.json"),
        (USER, "/inst", "/inst/state/bridge-stats.json"),
        ({**USER, "PURSERS_BRIDGE_STATE_DIR": "/s/d"}, None, "/s/d/bridge-stats.json"),
        ({**USER, "PURSERS_BRIDGE_STATE_DIR": " ~/d "}, None, "/home/ann/d/bridge-stats.json"),
        ({**USER, "PURSERS_BRIDGE_STATE_DIR": "d"}, None, "/work/d/bridge-stats.json"),
        ({**USER, "PURSERS_BRIDGE_STATE_DIR": "/s/d"}, "/inst", "/inst/state/bridge-stats.json"),
        ({**USER, "PURSERS_BRIDGE_STATS": "/x/y.json", "PURSERS_BRIDGE_STATE_DIR": "/s"}, None, "/x/y.json"),
        ({**USER, "PURSERS_BRIDGE_STATS": "/x/y.json"}, "/inst", "/x/y.json"),
        ({**USER, "PURSERS_BRIDGE_STATS": "~/y.json"}, None, "/home/ann/y.json"),
        ({**USER, "PURSERS_BRIDGE_STATS": "../y.json"}, None, "/y.json"),
        ({**USER, "PURSERS_BRIDGE_STATS": "  "}, "/inst", "/inst/state/bridge-stats.json"),
    ],
)
def test_the_nearest_setting_counts(environ: dict[str, str], home: str | None, path: str) -> None:
    assert stats_path(environ, home, "/work") == path


def test_without_a_home_it_is_that_of_the_user() -> None:
    assert stats_path({}, None, "/") == os.path.expanduser("~") + "/.pursers/wait-bridge/bridge-stats.json"
