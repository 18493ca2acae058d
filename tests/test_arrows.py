"""The import arrows: a module imports only from a lower layer (docs/architecture.md)."""

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = {"pursers_shim": ROOT / "shim", "pursersd": ROOT / "daemon", "pursersctl": ROOT / "cli"}

# The longest matching prefix counts. Modules of one layer may import one another, but not in a circle.
LAYERS = {
    "pursers_shim": 0,
    "pursers_shim.wire": 1,
    "pursers_shim.paths": 1,
    "pursers_shim.launch": 1,
    "pursers_shim.starts": 1,
    "pursers_shim.service": 1,
    "pursers_shim.message": 1,
    "pursers_shim.dial": 2,
    "pursers_shim.resume": 2,
    "pursers_shim.outbox": 2,
    "pursers_shim.early": 3,
    "pursers_shim.link": 3,
    "pursers_shim.host": 3,
    "pursers_shim.exchange": 4,
    "pursers_shim.relay": 5,
    "pursers_shim.__main__": 6,
    "pursersd": 0,
    "pursersd.api": 10,
    "pursersd.clock": 10,
    "pursersd.errors": 10,
    "pursersd.files": 10,
    "pursersd.ids": 10,
    "pursersd.installed": 10,
    "pursersd.lanes": 10,
    "pursersd.machine": 10,
    "pursersd.secret": 10,
    "pursersd.windows": 12,
    "pursersd.descriptors": 12,
    "pursersd.suspension": 12,
    "pursersd.stalls": 12,
    "pursersd.settings": 12,
    "pursersd.rules": 11,
    "pursersd.timings": 12,
    "pursersd.events": 12,
    "pursersd.differences": 12,
    "pursersd.event_stream": 13,
    "pursersd.metrics": 13,
    "pursersd.log": 12,
    "pursersd.health": 12,
    "pursersd.own_health": 12,
    "pursersd.state": 12,
    "pursersd.ownership": 12,
    "pursersd.supervisor": 12,
    "pursersd.configured": 12,
    "pursersd.service_start": 13,
    "pursersd.fence": 13,
    "pursersd.central": 13,
    "pursersd.seats": 14,
    "pursersd.feed": 15,
    "pursersd.waits": 16,
    "pursersd.door_check": 14,
    "pursersd.door_join": 16,
    "pursersd.conversation": 17,
    "pursersd.tools": 18,
    "pursersd.local": 18,
    "pursersd.control": 18,
    "pursersd.listener": 19,
    "pursersd.app": 20,
    "pursersd.__main__": 21,
    "pursersctl": 33,  # the families of commands
    **dict.fromkeys(
        # Data and decisions.
        (
            "pursersctl.errors",
            "pursersctl.found",
            "pursersctl.hosts_report",
            "pursersctl.log_lines",
            "pursersctl.pick",
            "pursersctl.printed",
            "pursersctl.redaction",
            "pursersctl.table",
            "pursersctl.tally",
            "pursersctl.usage",
        ),
        30,
    ),
    **dict.fromkeys(
        # What is shown: structs in, lines out.
        (
            "pursersctl.detail",
            "pursersctl.hosts_render",
            "pursersctl.render",
            "pursersctl.render_events",
            "pursersctl.render_local",
            "pursersctl.render_ps",
            "pursersctl.render_stats",
            "pursersctl.render_top",
            "pursersctl.sweep_shown",
        ),
        31,
    ),
    "pursersctl.client": 32,
    "pursersctl.live": 32,
    "pursersctl.output": 32,
    # It looks at what the families know.
    **dict.fromkeys(
        (f"pursersctl.{path.stem}" for path in (SOURCES["pursersctl"] / "pursersctl").glob("doctor*.py")), 34
    ),
    "pursersctl.doctor_shown": 31,
    # Command lines that import their command only when it is called.
    "pursersctl.doctor_command": 35,
    "pursersctl.sweep_command": 35,
    "pursersctl.seeing": 35,
    "pursersctl.__main__": 36,
    "pursersctl.program": 37,
}

# What a program may use of another one: nothing else may cross.
CROSSING = {
    "pursersd": (
        "pursers_shim",
        "pursers_shim.wire",
        "pursers_shim.paths",
        "pursers_shim.dial",
        "pursers_shim.launch",
        "pursers_shim.starts",
    ),
    "pursersctl": (
        "pursers_shim",
        "pursers_shim.wire",
        "pursers_shim.paths",
        "pursers_shim.dial",
        "pursers_shim.service",
        "pursers_shim.starts",
        "pursersd",
        "pursersd.api",
        "pursersd.api.events",
        "pursersd.api.measures",
        "pursersd.secret",
        # The stored doors belong to the user and not to the daemon: they are shown and forgotten without one.
        "pursersd.errors",
        "pursersd.rules.door_request",
        "pursersd.state.doors",
        # So do the statistics.
        "pursersd.rules.bridge_files",
        "pursersd.rules.stats",
        "pursersd.rules.stats_document",
        # What outlived its host is found without a daemon, too.
        "pursersd.conversation.identity",
        "pursersd.rules.hosting",
        "pursersd.rules.reaping",
        "pursersd.rules.server_command",
        # And what may be wrong.
        "pursersd.door_check",
        "pursersd.health",
        "pursersd.rules.door",
        "pursersd.state.epoch",
        "pursersd.machine",
        # And the configuration file: it is shown without a daemon.
        "pursersd.configured",
        # And the wish for a local board: it says why its Central is silent.
        "pursersd.local.record",
        "pursersd.rules.local_board",
    ),
    "pursers_shim": (),
}

PURE = (
    "pursersd.secret",
    "pursersd.rules",
    "pursersd.settings",
    "pursersd.ids",
    "pursersd.health",
    "pursersd.own_health",
    "pursersd.differences",
    "pursersd.metrics",
)
REVEALING = {
    "pursersd.central.client",  # the header of a request
    "pursersd.central.pool",  # its key id and its expiry
    "pursersd.rules.credential",  # whether it can be a token, and the one that is required
    "pursersd.rules.door",  # what it says of board and scopes
    "pursersd.rules.door_file",  # doors.json
    "pursersd.rules.host_binding",  # the proof that an answer to a question is its coordinator's
    "pursersd.local.instance",  # the token files for connectors to the local board
}
"""What may look into a credential, and what for."""

TAKEN_AS_DATA = ("pursersd.api", "pursersd.errors", "pursersd.installed", "pursersd.timings")
"""What a decision may import of ours beside other decisions: structs, and names of them."""

IMPURE = {"anyio", "asyncio", "httpx2", "mcp", "socket", "subprocess", "sqlite3", "threading"}


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the three programs, by dotted name."""
    for program, folder in SOURCES.items():
        for file in sorted((folder / program).rglob("*.py")):
            parts = file.relative_to(folder).with_suffix("").parts
            yield ".".join(part for part in parts if part != "__init__"), file


MODULES = dict(modules())


@functools.cache
def nodes(name: str) -> tuple[ast.AST, ...]:
    """Everything in the source of a module."""
    return tuple(ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))))


@functools.cache
def imports(name: str) -> frozenset[str]:
    """What a module imports, at the top or inside functions; of ours the module, not the name in it."""
    found: set[str] = set()
    for node in nodes(name):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import"
            base = node.module or ""
            found |= {f"{base}.{a.name}" if f"{base}.{a.name}" in MODULES else base for a in node.names}
    return frozenset(found)


def layer(name: str) -> int:
    """The layer of one of our modules."""
    while name not in LAYERS:
        name = name.rpartition(".")[0]
        assert name, "no layer"
    return LAYERS[name]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_only_downwards(name: str) -> None:
    program = name.partition(".")[0]
    for used in imports(name):
        if used.partition(".")[0] not in SOURCES:
            continue
        if used.partition(".")[0] == program:
            assert layer(used) <= layer(name), f"{name} imports {used}, which lies above it"
        else:
            assert used in CROSSING[program], f"{name} imports {used} of another program"


@pytest.mark.parametrize("name", sorted(n for n in MODULES if n.startswith("pursers_shim")))
def test_the_shim_is_standard_library_only(name: str) -> None:
    foreign = {used.partition(".")[0] for used in imports(name)} - {"pursers_shim"}
    assert foreign <= sys.stdlib_module_names


@pytest.mark.parametrize("name", sorted(n for n in MODULES if n.startswith(PURE)))
def test_decisions_do_no_io(name: str) -> None:
    used = imports(name)
    assert not {module.partition(".")[0] for module in used} & IMPURE
    ours = {module for module in used if module.partition(".")[0] in SOURCES and module != "pursersd"}
    assert {module for module in ours if not module.startswith((*PURE, *TAKEN_AS_DATA))} == set()


def test_every_line_of_the_tables_is_about_a_module() -> None:
    named = {*LAYERS, *REVEALING, *PURE, *TAKEN_AS_DATA, *(name for names in CROSSING.values() for name in names)}
    assert named - MODULES.keys() == set()


def test_no_program_is_allowed_what_it_does_not_use() -> None:
    for program, allowed in CROSSING.items():
        used = {module for name in MODULES if name.partition(".")[0] == program for module in imports(name)}
        assert set(allowed) - used - set(SOURCES) == set(), program


def test_only_these_look_into_a_credential() -> None:
    found = set()
    for name in MODULES:
        if any(isinstance(node, ast.Attribute) and node.attr == "reveal" for node in nodes(name)):
            found.add(name)
    assert found == REVEALING


def test_packages_have_no_cycles() -> None:
    """Inside a package, too, no two modules import one another."""
    graph = {name: {used for used in imports(name) if used in MODULES and used != name} for name in MODULES}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, "cycle: " + " → ".join((*path[path.index(name) :], name))
        if name not in done:
            for used in graph[name]:
                visit(used, (*path, name))
            done.add(name)

    for name in graph:
        visit(name, ())
