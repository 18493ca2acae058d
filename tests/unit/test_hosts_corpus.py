"""Configuration files as people have them: `hosts add` and `hosts remove` leave every other byte alone."""

import codecs
from pathlib import Path

import pytest

from pursersctl import hosts_edit, hosts_work
from pursersctl.errors import Failed
from pursersctl.hosts_known import BY_NAME, HOSTS
from unit.hosts_rig import CORPUS, Desk

FILES = sorted(path for path in CORPUS.iterdir() if path.is_file())
BROKEN = sorted((CORPUS / "broken").iterdir())
EMPTY_VALUE = ("goose--empty-extensions.yaml",)
"""Where the sign for nothing has to go."""


def name(path: Path) -> str:
    return path.name


def host(path: Path) -> str:
    return path.name.partition("--")[0]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr("os.fsync", lambda _: None)  # hundreds of them, and no power is lost here
    return Desk(tmp_path)


def placed(desk: Desk, sample: Path) -> Path:
    return desk.write(host(sample), sample.read_bytes(), suffix=sample.suffix)


def is_part(part: bytes, whole: bytes) -> bool:
    """Whether `part` is left when something is taken out of `whole`."""
    rest = iter(whole)
    return all(byte in rest for byte in part)


def values(sample: Path, data: bytes) -> object:
    return hosts_edit.load(BY_NAME[host(sample)].format, data.decode("utf-8-sig"))


@pytest.mark.parametrize("known", [known.name for known in HOSTS])
def test_every_host_is_in_the_corpus_with_the_hard_cases(known: str) -> None:
    data = [path.read_bytes() for path in FILES if host(path) == known]
    assert len(data) >= 5
    assert any(b"\r\n" in each for each in data)
    assert any(not each.strip() for each in data) or known in ("cursor", "zed", "vscode")


@pytest.mark.parametrize("sample", FILES, ids=name)
def test_add_and_remove(desk: Desk, sample: Path) -> None:
    file = placed(desk, sample)
    before = sample.read_bytes()
    added = hosts_work.add(desk.wish(host(sample)))
    assert [entry.action for entry in added.entries] == ["added"]
    after = file.read_bytes()
    servers = desk.servers(host(sample), file)
    assert desk.machine.shim() in (servers["pursers"].get("command") or servers["pursers"]["cmd"])
    assert is_part(before if sample.name not in EMPTY_VALUE else before.replace(b" {}", b""), after), "nothing is gone"
    assert after.startswith(codecs.BOM_UTF8) == before.startswith(codecs.BOM_UTF8)
    assert b"\r\n" not in before or b"\n" not in after.replace(b"\r\n", b""), "one kind of line end"
    hosts_work.remove(desk.wish(host(sample)))
    assert file.read_bytes() == before


@pytest.mark.parametrize("sample", FILES, ids=name)
def test_what_others_change_meanwhile_stays(desk: Desk, sample: Path) -> None:
    """The copy cannot be put back then: what was added is found in the text, and only that is cut."""
    file = placed(desk, sample)
    hosts_work.add(desk.wish(host(sample)))
    mark = codecs.BOM_UTF8 if file.read_bytes().startswith(codecs.BOM_UTF8) else b""
    file.write_bytes(mark + b"\n" + file.read_bytes()[len(mark) :])
    hosts_work.remove(desk.wish(host(sample)))
    left = file.read_bytes()
    expected = mark + b"\n" + sample.read_bytes()[len(mark) :]
    assert left == expected


def emptied(sample: Path, data: bytes) -> object:
    """The same with the object of the servers, but empty."""
    found = values(sample, data)
    assert isinstance(found, dict)
    return {**found, BY_NAME[host(sample)].container[0]: {}}


@pytest.mark.parametrize("sample", FILES, ids=name)
def test_remove_without_a_record(desk: Desk, sample: Path) -> None:
    """As on another machine that shares the file: the values are right, and where servers were before, every byte."""
    file = placed(desk, sample)
    had_servers = bool(desk.servers(host(sample), file))
    hosts_work.add(desk.wish(host(sample)))
    for record in desk.records.folder.iterdir():
        record.unlink()
    hosts_work.remove(desk.wish(host(sample)))
    left = file.read_bytes()
    assert values(sample, left) in (values(sample, sample.read_bytes()), emptied(sample, sample.read_bytes()))
    if had_servers and not left.endswith(b"\n\n"):
        assert left.rstrip() == sample.read_bytes().rstrip()


@pytest.mark.parametrize("sample", FILES, ids=name)
def test_adding_twice_changes_nothing(desk: Desk, sample: Path) -> None:
    file = placed(desk, sample)
    hosts_work.add(desk.wish(host(sample)))
    after = file.read_bytes()
    again = hosts_work.add(desk.wish(host(sample)))
    assert [entry.action for entry in again.entries] == ["unchanged"]
    assert again.backup is None
    assert file.read_bytes() == after


@pytest.mark.parametrize("sample", FILES, ids=name)
def test_a_dry_run_writes_nothing(desk: Desk, sample: Path) -> None:
    placed(desk, sample)
    before = desk.files()
    told = hosts_work.add(desk.wish(host(sample), dry_run=True))
    assert told.dry_run
    assert [entry.action for entry in told.entries] == ["added"]
    assert desk.files() == before
    assert not desk.records.folder.exists()


@pytest.mark.parametrize("sample", BROKEN, ids=name)
def test_a_file_that_is_not_understood_is_left_alone(desk: Desk, sample: Path) -> None:
    file = placed(desk, sample)
    for work in (hosts_work.add, hosts_work.remove, hosts_work.migrate):
        with pytest.raises(Failed) as caught:
            work(desk.wish(host(sample)))
        assert str(file) in str(caught.value)
        assert file.read_bytes() == sample.read_bytes()
    assert not desk.records.folder.exists()


@pytest.mark.parametrize("sample", FILES, ids=name)
def test_a_link_stays_one_and_the_file_behind_it_is_changed(desk: Desk, sample: Path) -> None:
    file = placed(desk, sample)
    real = desk.home / "dotfiles" / sample.name
    real.parent.mkdir()
    file.rename(real)
    file.symlink_to(real)
    added = hosts_work.add(desk.wish(host(sample)))
    assert added.file == str(real)
    assert file.is_symlink()
    assert real.read_bytes() != sample.read_bytes()
    hosts_work.remove(desk.wish(host(sample)))
    assert file.is_symlink()
    assert real.read_bytes() == sample.read_bytes()
