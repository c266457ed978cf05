"""The memory oracle's words: which clause wrong bytes break, whatever the books say."""

from __future__ import annotations

from collections.abc import Iterator

from ..model.records import Observation, Trouble


def wrong_bytes(obs: Observation, stale: bool = False) -> Iterator[tuple[str, str]]:
    """(clause, message) of each trouble of an operation but FREED_BUSY; `stale`: the graph was outdated (R12)."""
    if obs.trouble & Trouble.BAD_PREALLOC:
        yield "P14", f"preallocated tensor {obs.bad_node} was overwritten at byte {obs.bad_offset}"
    if obs.trouble & Trouble.BAD_GUARD:
        yield "P3", "bytes behind the end of a buffer were written"
    if obs.trouble & Trouble.BAD_SOURCE:
        yield ("R12" if stale else "P1"), f"source {obs.bad_src} of node {obs.bad_node} holds wrong bytes"
    if obs.trouble & Trouble.BAD_OUTPUT:
        yield ("R12" if stale else "P5"), f"output {obs.bad_node} holds wrong bytes"
