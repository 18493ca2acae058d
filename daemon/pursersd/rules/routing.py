"""Where the work behind an event is done, as the project registry says it (bridge.md §2.7).

Only a wait on the boards of the registry routes its events. A route never leaves its board: a target that another board
has is as wrong as one that nobody has.
"""

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import SplitResult, urlsplit

import msgspec

from pursersd.rules.arguments import WaitFor

RefusalCode = Literal[
    "target_url_malformed",
    "repository_url_not_registered",
    "repository_url_board_mismatch",
    "repository_url_ambiguous",
    "project_route_not_registered",
    "project_route_ambiguous",
    "operator_checkout_read_only",
]


@dataclass(frozen=True, slots=True)
class Route:
    """The one project behind a target. `operator_dir` is its checkout if that belongs to the operator."""

    project: str
    work_dir: str
    operator_dir: str | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a target leads nowhere, or nowhere that a seat may work; in the bridge's words."""

    code: RefusalCode
    message: str


READ_ONLY = Refusal("operator_checkout_read_only", "operator checkout is read-only for seats")


def is_claimable_call(wait_for: WaitFor, declared_role: str | None) -> bool:
    """Whether the caller waits for work to claim. For `auto` the declared role counts, not the one that Central gives."""
    return wait_for == "claimable" or (wait_for == "auto" and declared_role == "worker")


def resolve(registry: Mapping[str, object], board: str, target_url: str) -> Route | Refusal:
    """The route of a ticket's target on its board, by a validated registry."""
    return _resolve(_active(registry), board, target_url)


def route(
    events: Iterable[Mapping[str, object]],
    registry: Mapping[str, object],
    *,
    claimable_call: bool,
    real_path: Callable[[str], str] = os.path.realpath,
) -> list[dict[str, object]]:
    """Copies of the events with their routes, in order, by a validated registry.

    A claimable call loses the events whose target no seat can ever claim; what has no target but leads to the
    operator's checkout stays, with `claim_refused`. The result may be empty: then nothing is there for the caller.
    News of work that the seat has stay in any case: there is nothing to claim. (The bridge loses them, too.)
    Two folders are the same if `real_path` is; that looks at symlinks, so at the file system.
    """
    projects = _active(registry)
    map_ = _Map(_only_dirs(projects.values()), _operator_dirs(projects.values()), _comparison(real_path))
    routed = (_routed(event, projects, map_, claimable_call and not _is_held(event)) for event in events)
    return [event for event in routed if event is not None]


class _Project(msgspec.Struct, frozen=True):
    board_id: str
    work_dir: str
    status: str
    fleet: bool = True
    work_dir_owner: str = "operator"
    fleet_clone_dir: str | None = None
    repository_url: str | None = None

    @property
    def place(self) -> str:
        """Where seats work on it."""
        return self.fleet_clone_dir or self.work_dir

    @property
    def operator_dir(self) -> str | None:
        return self.work_dir if self.work_dir_owner == "operator" else None


class _Registry(msgspec.Struct, frozen=True):
    projects: dict[str, _Project]


@dataclass(frozen=True, slots=True)
class _Map:
    only_dirs: Mapping[str, str]
    """The folder of each board that has just one."""
    operator_dirs: Mapping[str, frozenset[str]]
    """The operator's checkouts by board, also of projects on which seats do not work."""
    same: Callable[[str, str], bool]

    def is_read_only(self, board: object, work_dir: object) -> bool:
        checkouts = self.operator_dirs.get(board, frozenset()) if isinstance(board, str) else ()
        return isinstance(work_dir, str) and any(self.same(work_dir, checkout) for checkout in checkouts)


def _routed(
    event: Mapping[str, object], projects: Mapping[str, _Project], map_: _Map, claimable_call: bool
) -> dict[str, object] | None:
    told = dict(event)
    board, target = event.get("board_id"), event.get("target_url")
    if isinstance(board, str) and isinstance(target, str):
        found = _resolve(projects, board, target)
        if claimable_call and (isinstance(found, Refusal) or _is_own_read_only(found, map_)):
            return None
        if isinstance(found, Refusal):
            told.pop("work_dir", None)
            told["routing_error"] = {"code": found.code, "message": found.message}
            return told
        work_dir: object = found.work_dir
    else:
        work_dir = event.get("work_dir") or (map_.only_dirs.get(board) if isinstance(board, str) else None)
    if work_dir is not None:
        told["work_dir"] = work_dir
    if claimable_call and map_.is_read_only(board, work_dir):
        told["claim_refused"] = True
        told["claim_refusal_code"] = READ_ONLY.code
        told["claim_refusal_reason"] = READ_ONLY.message
    return told


def _is_held(event: Mapping[str, object]) -> bool:
    return event.get("reason") == "held_ticket_update"


def _is_own_read_only(route: Route, map_: _Map) -> bool:
    return route.operator_dir is not None and map_.same(route.work_dir, route.operator_dir)


def _resolve(projects: Mapping[str, _Project], board: str, target: str) -> Route | Refusal:
    try:
        url = urlsplit(target)
    except ValueError:
        return Refusal(
            "target_url_malformed",
            "target_url must be a valid legacy project/path or credential-free HTTPS repository URL",
        )
    here = {name: p for name, p in projects.items() if p.fleet and p.board_id == board}
    is_repository = bool(url.scheme or url.netloc)
    everywhere = projects.values()
    names = _by_repository(here, everywhere, board, target, url) if is_repository else _by_name(here, board, target)
    if isinstance(names, Refusal):
        return names
    if len(names) > 1:
        code: RefusalCode = "repository_url_ambiguous" if is_repository else "project_route_ambiguous"
        return Refusal(code, f"target_url matches multiple active projects on board {board!r}")
    project = here[names[0]]
    return Route(names[0], project.place, project.operator_dir)


def _by_repository(
    here: Mapping[str, _Project], everywhere: Iterable[_Project], board: str, target: str, url: SplitResult
) -> Sequence[str] | Refusal:
    if target != target.strip() or not _is_plain_https(url):
        return Refusal(
            "target_url_malformed",
            "target_url repository URL must be an exact credential-free HTTPS repository URL without query or fragment",
        )
    found = [name for name, project in here.items() if project.repository_url == target]
    if found:
        return found
    elsewhere = any(project.fleet and project.repository_url == target for project in everywhere)
    return Refusal(
        "repository_url_board_mismatch" if elsewhere else "repository_url_not_registered",
        f"target_url repository URL is not registered for board {board!r}; "
        "configure the project's exact project_registry repository_url",
    )


def _is_plain_https(url: SplitResult) -> bool:
    # A password alone has an empty user before it.
    bare = url.username is None and not url.query and not url.fragment
    return url.scheme == "https" and bool(url.netloc) and bare and url.path not in ("", "/")


def _by_name(here: Mapping[str, _Project], board: str, target: str) -> Sequence[str] | Refusal:
    key = target.partition("/")[0].casefold()
    found = [name for name, p in here.items() if key in (name.casefold(), PurePosixPath(p.work_dir).name.casefold())]
    return found or Refusal(
        "project_route_not_registered", f"target_url must begin with a project registered for board {board!r}"
    )


def _active(registry: Mapping[str, object]) -> dict[str, _Project]:
    projects = msgspec.convert(registry, _Registry).projects
    return {name: project for name, project in projects.items() if project.status == "active"}


def _only_dirs(projects: Iterable[_Project]) -> dict[str, str]:
    dirs: dict[str, set[str]] = {}
    for project in projects:
        if project.fleet:
            dirs.setdefault(project.board_id, set()).add(project.place)
    return {board: found.pop() for board, found in dirs.items() if len(found) == 1}


def _operator_dirs(projects: Iterable[_Project]) -> dict[str, frozenset[str]]:
    dirs: dict[str, frozenset[str]] = {}
    for project in projects:
        if project.operator_dir is not None:
            dirs[project.board_id] = dirs.get(project.board_id, frozenset()) | {project.operator_dir}
    return dirs


def _comparison(real_path: Callable[[str], str]) -> Callable[[str, str], bool]:
    @functools.cache
    def real(path: str) -> str:
        try:
            return real_path(path)
        except (OSError, ValueError):
            # A loop of symlinks, or a NUL in the path: such a folder is only the same as itself.
            return os.path.normpath(path)

    return lambda one, other: one == other or real(one) == real(other)
