"""installed: which version lies on disk."""

from pathlib import Path

import pytest

from pursersd import __version__, installed


def test_it_is_ours() -> None:
    found = installed.installed()
    assert found.version == __version__
    assert found.age_s >= 0


@pytest.mark.parametrize(
    ("content", "version"), [('__version__ = "9.9"\n', "9.9"), ("", None), ('x = "1"', None), ("\xff", None)]
)
def test_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, version: str | None) -> None:
    file = tmp_path / "__init__.py"
    monkeypatch.setattr(installed, "_FILE", str(file))
    assert installed.installed().version is None
    file.write_bytes(content.encode("latin-1"))
    assert installed.installed().version == version
