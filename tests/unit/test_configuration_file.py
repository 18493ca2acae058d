"""The configuration of the daemon: what the file may say, what counts before what, and what a reload changes."""

import re
from pathlib import Path

import pytest

from pursersd.configured import Configured
from pursersd.errors import ConfigurationError
from pursersd.rules.configuration import DEFAULTS, KEYS, Key, Value, flag_value, read, resolve

FILE = "/c/config.toml"
PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def other(name: str) -> tuple[str, Value]:
    """A valid value of a key that is not its default, as it is written in the file."""
    key = next(key for key in KEYS if key.name == name)
    if key.choices:
        value: Value = next(choice for choice in key.choices if choice != key.default)
        return f'"{value}"', value
    assert isinstance(key.default, int | float)
    value = key.default * 2
    assert key.least <= value <= key.most
    return str(value), value


def document(*lines: str) -> str:
    return "\n".join(lines)


# --- what the file may say ---


def test_nothing_set_means_the_defaults() -> None:
    for text in (None, "", "# nothing\n[log]\n"):
        found = resolve({}, {}, text, FILE)
        assert found.configuration == DEFAULTS
        assert {setting.origin for setting in found.settings.values()} == {"default"}
        assert found.problems == found.notes == ()


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_flag_before_variable_before_file_before_default(key: Key) -> None:
    section, _, name = key.name.partition(".")
    written, value = other(key.name)
    text = f"[{section}]\n{name} = {written}\n"
    of_file = resolve({}, {}, text, FILE).settings[key.name]
    assert (of_file.value, of_file.origin, of_file.name) == (value, "file", None)
    environ = {key.variable: str(key.default)}
    of_variable = resolve({}, environ, text, FILE).settings[key.name]
    assert (of_variable.value, of_variable.origin) == (key.default, "variable")
    assert of_variable.name == key.variable
    of_flag = resolve({key.name: ("--it", value)}, environ, None, FILE).settings[key.name]
    assert (of_flag.value, of_flag.origin, of_flag.name) == (value, "flag", "--it")


def test_every_field_of_the_configuration_can_be_set() -> None:
    assert sorted(key.field for key in KEYS) == sorted(DEFAULTS.__dataclass_fields__)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (
            document("[log]", "", "levle = 'info'"),
            3,
            "there is no key 'levle' in [log]; there are level, max_bytes, kept",
        ),
        (document("[log]", "level = 'loud'"), 2, "log.level must be one of debug, info, warning"),
        (document("[log]", "level = 3"), 2, "log.level must be one of"),
        (document("# x", "[log]", "kept = true"), 3, "log.kept must be an integer from 1 to 100"),
        (document("[log]", "kept = 2.0"), 2, "log.kept must be an integer"),
        (document("[daemon]", "drain_s = 61"), 2, "daemon.drain_s must be a number of seconds from 0 to 60"),
        (document("[daemon]", "idle_exit_s = nan"), 2, "daemon.idle_exit_s must be a number of seconds from 0 on"),
        (document("[daemon]", "idle_exit_s = 'x'"), 2, "daemon.idle_exit_s must be"),
        (document("[log]", "kept = 3", "[lgo]", "kept = 3"), 3, "there is no section 'lgo'; there are [daemon], [log]"),
        (document("level = 'debug'"), 1, "there is no section 'level'"),
        (document("log = 'debug'"), 1, "'log' is a section: write [log]"),
        (document("", "log.kept = 'many'"), 2, "log.kept must be an integer"),
        (document("[daemon]", "[log.kept]", "x = 1"), 2, "log.kept must be an integer"),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_the_rest_counts(text: str, line: int, words: str) -> None:
    whole = f"{text}\n[statistics]\nwrite_every_s = 5\n"
    found, problems = read(whole, FILE)
    assert found["statistics.write_every_s"] == 5.0
    (problem,) = problems
    assert problem.startswith(f"{FILE}, line {line}: ")
    assert words in problem


def test_what_is_no_toml_is_told_with_its_line() -> None:
    found, (problem,) = read("[log]\nlevel = \n", FILE)
    assert found == {}
    assert problem.startswith(f"{FILE}: it is not TOML: ")
    assert "line 2" in problem


def test_a_variable_that_cannot_be_used_is_ignored_and_noted() -> None:
    found = resolve({}, {"PURSERSD_LOG_KEPT": "many", "PURSERSD_IDLE_EXIT_S": "-1"}, "[log]\nkept = 5\n", FILE)
    assert (found.settings["log.kept"].value, found.settings["daemon.idle_exit_s"].value) == (5, 600.0)
    assert [note.split(" ")[0] for note in found.notes] == ["PURSERSD_IDLE_EXIT_S", "PURSERSD_LOG_KEPT"]
    assert not any("many" in note for note in found.notes)


def test_a_blank_variable_counts_as_unset() -> None:
    assert resolve({}, {"PURSERSD_LOG_LEVEL": " "}, None, FILE).settings["log.level"].origin == "default"


def test_a_flag_takes_what_the_file_takes() -> None:
    assert flag_value("daemon.idle_exit_s", "0.5") == 0.5
    with pytest.raises(ValueError, match="a number of seconds from 0 on"):
        flag_value("daemon.idle_exit_s", "soon")


# --- a reload ---


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def configured(file: Path, **environ: str) -> Configured:
    return Configured(str(file), environ, {})


def test_a_reload_says_what_changed_and_what_needs_a_restart(file: Path) -> None:
    found = configured(file)
    assert found.reload().changes == []
    assert not found.reload().exists
    file.write_text("[log]\nkept = 7\n[daemon]\ndescriptors = 512\n")
    assert [row.key for row in found.show().rows if row.pending is not None] == ["daemon.descriptors", "log.kept"]
    assert [row.key for row in found.show().rows if row.needs_restart] == ["daemon.descriptors"]
    reloaded = found.reload()
    changes = [(change.key, change.before, change.after, change.needs_restart) for change in reloaded.changes]
    assert changes == [("daemon.descriptors", 8192, 512, True), ("log.kept", 3, 7, False)]
    assert (found.now.log_kept, found.now.descriptors) == (7, 8192)
    rows = {row.key: row for row in found.show().rows}
    assert (rows["log.kept"].value, rows["log.kept"].origin, rows["log.kept"].pending) == (7, "file", None)
    assert (rows["daemon.descriptors"].value, rows["daemon.descriptors"].pending) == (8192, 512)
    file.unlink()
    assert [change.key for change in found.reload().changes] == ["log.kept"]
    assert found.now == DEFAULTS


@pytest.mark.parametrize("text", ["[log]\nkept = 9\nlevle = 1\n", "[log\n", "[log]\nkept = 0\n"])
def test_a_bad_file_changes_nothing_and_says_why(file: Path, text: str) -> None:
    file.write_text("[log]\nkept = 7\n")
    found = configured(file)
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"config\.toml(?s:.*)Nothing was changed"):
        found.reload()
    assert found.now.log_kept == 7
    assert found.problems
    file.write_text("[log]\nkept = 8\n")
    assert [change.after for change in found.reload().changes] == [8]
    assert found.problems == ()


def test_at_the_start_the_rest_of_a_bad_file_counts(file: Path) -> None:
    file.write_text("[log]\nkept = 9\nlevle = 1\n")
    found = configured(file)
    assert found.now.log_kept == 9
    assert "levle" in found.problems[0]


@pytest.mark.parametrize("make", [lambda file: file.mkdir(), lambda file: file.write_bytes(b"\xff\xfe")])
def test_what_cannot_be_read_is_a_problem_and_no_end(file: Path, make) -> None:  # type: ignore[no-untyped-def]
    make(file)
    found = configured(file, PURSERSD_LOG_KEPT="4")
    assert (found.now.log_kept, found.now.log_level) == (4, "info")
    assert found.problems[0].startswith(f"{file}: cannot be read: ")


def test_a_variable_goes_on_to_count_after_a_reload(file: Path) -> None:
    found = configured(file, PURSERSD_LOG_KEPT="4")
    file.write_text("[log]\nkept = 7\n")
    assert found.reload().changes == []
    assert found.now.log_kept == 4


# --- the page ---


def test_the_page_lists_every_key_as_it_is() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## The daemon's own file")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| `(\w+)` \| `?([^|`]*?)`? \| ([^|]*?) \| ", section, re.MULTILINE)
    expected = []
    for key in KEYS:
        default = f"{key.default:g}" if isinstance(key.default, float) else str(key.default)
        expected.append((key.name, key.variable, default, key.allowed))
    assert rows == expected
    flags = re.findall(r"`(--[\w-]+)`", section)
    assert {"--idle-exit", "--verbose"} <= set(flags)
    for key in KEYS:
        row = next(line for line in section.splitlines() if f"`{key.name}`" in line)
        assert ("after a restart" in row) == key.needs_restart
