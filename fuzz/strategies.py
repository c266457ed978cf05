"""The generators as Hypothesis strategies. Only tests import this."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from ..model.records import BufferType, Cap, Graph, Trace
from . import generate, graphs
from .draw import HypothesisDraw


@st.composite
def traces(
    draw: Callable[[Any], Any],
    profile: generate.Profile = "gallocr",
    caps: Cap = generate.ALL_CAPS,
    length: int = 20,
) -> Trace:
    """Legal traces of a profile (see generate.draw_trace)."""
    return generate.draw_trace(HypothesisDraw(draw), profile, caps, length)


@st.composite
def graphs_for(
    draw: Callable[[Any], Any],
    types: tuple[BufferType, ...] = (BufferType(),),
    scale: int = 64,
    n_slots: int = 1,
) -> Graph:
    """Legal graphs for allocators over `types`."""
    return graphs.draw_graph(HypothesisDraw(draw), types, scale, n_slots)


@st.composite
def other_lifetimes(draw: Callable[[Any], Any], graph: Graph) -> Graph:
    """Graphs of the same tensor count and sizes with other lifetimes (see graphs.mutate_lifetimes)."""
    return graphs.mutate_lifetimes(HypothesisDraw(draw), graph)
