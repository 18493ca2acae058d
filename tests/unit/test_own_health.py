"""own_health: what is wrong with the daemon itself."""

from pursersd.installed import Installed
from pursersd.own_health import of_installation, of_shims, of_starts
from unit.ctl_samples import seat


def test_the_package_was_replaced() -> None:
    assert of_installation("1", Installed("1", 5.0), 9.0) == []
    (newer,) = of_installation("1", Installed("2", 5.0), 9.0)
    assert (newer.code, newer.since_s) == ("restart_needed", 5.0)
    assert newer.text == "Version 2 is installed; this daemon is still version 1."
    (gone,) = of_installation("1", Installed(None, 0.0), 9.0)
    assert "is gone" in gone.text
    assert "Install pursersd again" in gone.action


def test_shims_of_another_version() -> None:
    assert of_shims("1", [seat(shim_version="1"), seat(shim_version="1")]) == []
    (warning,) = of_shims(
        "1", [seat(shim_version="1"), seat(shim_version="2", age_s=7.0), seat(shim_version="", age_s=3.0)]
    )
    assert (warning.code, warning.since_s) == ("version_skew", 7.0)
    assert warning.text.startswith("2 of 3 shims run version 2, unknown, this daemon 1.")


def test_a_crash_loop() -> None:
    (warning,) = of_starts(4, 2.0, "MemoryError")
    assert (warning.code, warning.since_s) == ("crash_loop", 2.0)
    assert "number 4 in a row" in warning.text
    assert warning.text.endswith("printed: MemoryError")
    assert of_starts(4, 2.0, "")[0].text.endswith("by themselves.")
