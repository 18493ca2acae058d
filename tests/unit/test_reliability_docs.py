"""docs/reliability.md names tests that exist."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
DOCUMENT = (TESTS.parent / "docs" / "reliability.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:[a-z]+/)?test_[a-z_0-9]+\.py)(?:::(test_[a-z_0-9]+))?`", DOCUMENT)))


@pytest.mark.parametrize(("file", "test"), NAMED, ids=lambda value: value or "all")
def test_what_proves_it_is_there(file: str, test: str) -> None:
    text = (TESTS / file).read_text(encoding="utf-8")
    assert not test or f"def {test}(" in text


def test_every_row_of_the_fault_matrix_names_its_proof() -> None:
    rows = re.findall(
        r"^\| (?!Fault |---)(.*)\|$", DOCUMENT.partition("## Fault matrix")[2].partition("\n## ")[0], re.M
    )
    assert len(rows) > 40
    assert [row for row in rows if "test_" not in row and "the same" not in row] == []
