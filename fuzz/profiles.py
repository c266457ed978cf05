"""Every kind of trace that is drawn: how often, for which subjects, by what.

A new layer adds a line here; its own module draws the traces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..model.records import Cap, Trace
from .draw import Draw
from .draw_captures import draw_captures
from .draw_contexts import draw_contexts, draw_server
from .draw_counted import draw_counted
from .draw_meta import draw_meta
from .draw_pools import draw_pools
from .generate import PROFILES, Profile, draw_trace


class Source(NamedTuple):
    """Traces of one kind, for subjects that have any of `needs`."""

    weight: int
    needs: Cap
    draw: Callable[[Draw, Cap], Trace]


def _of(profile: Profile) -> Callable[[Draw, Cap], Trace]:
    return lambda draw, caps: draw_trace(draw, profile, caps)


_LOWER = {
    "plan": (6, Cap.PLAN),
    "gallocr": (4, Cap.PLAN),
    "huge": (2, Cap.PLAN),
    "pair": (4, Cap.RESIZABLE | Cap.GROUP),
    "sched": (5, Cap.SCHED),
}
SOURCES: dict[str, Source] = {p: Source(*_LOWER[p], _of(p)) for p in PROFILES}
SOURCES["counted"] = Source(6, Cap.COUNTED, draw_counted)
SOURCES["meta"] = Source(5, Cap.META, draw_meta)
SOURCES["pools"] = Source(7, Cap.POOL, draw_pools)
SOURCES["contexts"] = Source(3, Cap.CONTEXTS, draw_contexts)
SOURCES["server"] = Source(3, Cap.SERVER, draw_server)
SOURCES["captures"] = Source(7, Cap.CAPTURE, draw_captures)
