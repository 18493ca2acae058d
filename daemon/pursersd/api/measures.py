"""What the daemon counts: how long calls take, and everything as metrics."""

from typing import Literal

import msgspec

from pursersd.api.schema import SCHEMA


class LatencyRow(msgspec.Struct, frozen=True, kw_only=True):
    """How long one kind of thing took, since the daemon began."""

    kind: Literal["call", "wait", "wake"]
    """`call`: a tool call that is no wait, from its beginning to its answer. `wait`: the same of a wait, however it ended.
    `wake`: from Central's cue to the answer of the wait that it ended."""
    tool: str
    """`other` for a tool that the daemon does not have."""
    host: str
    """Kind of host; `other` when there were too many kinds."""
    count: int
    p50_s: float
    """Half of them took no longer. Percentiles are right to a quarter, and never too low."""
    p95_s: float
    p99_s: float
    max_s: float


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to `metrics`."""

    text: str
    """OpenMetrics text; docs/metrics.md lists the names."""
    schema: int = SCHEMA


DOWN = """\
# TYPE pursersd_up gauge
# HELP pursersd_up Whether the daemon runs and answers.
pursersd_up 0
# EOF
"""
"""The metrics of a daemon that is not there."""
