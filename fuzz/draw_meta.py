"""Traces on buffer types over several devices (M): owner and borrower that bind and compute in turn."""

from __future__ import annotations

from ..model.records import Cap, Kind, Trace
from .draw import Draw
from .generate import draw_history
from .setups import draw_meta_frame

#: maps and aliases show in what is computed after the other role did something
_MORE = ((Kind.ALLOC, 4), (Kind.COMPUTE, 8))


def draw_meta(draw: Draw, caps: Cap) -> Trace:
    """Mostly an owner and its borrower; plain allocators at times, and where `caps` has no RESIZABLE."""
    pair = bool(caps & (Cap.RESIZABLE | Cap.GROUP)) and draw.boolean(0.85)
    sched = bool(caps & Cap.SCHED) and draw.boolean(0.25)
    return draw_history(draw, draw_meta_frame(draw), caps, pair=pair, sched=sched, more=_MORE, length=24)
