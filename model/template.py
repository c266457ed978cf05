"""A context's graph for a batch: its template with sizes multiplied (W7; docs/workspace.md).

Sizes are bytes; tokens and cells are counts. Pads and view offsets are not multiplied.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from .records import Graph, Scale
from .workspace import Parts


@lru_cache(maxsize=1 << 14)
def scaled(template: Graph, tokens: int, parts: Parts) -> Graph:
    """The graph of a batch of so many tokens, with so many cells of each part of the memory."""
    times = {
        Scale.SCALE_NONE: 1,
        Scale.SCALE_TOKENS: tokens,
        Scale.SCALE_ATTENTION: tokens * parts.attention,
        Scale.SCALE_WINDOW: tokens * parts.window,
        Scale.SCALE_INDEXER: tokens * parts.indexer,
    }
    return Graph(
        tuple(replace(t, size=t.size * times[t.scale], scale=Scale.SCALE_NONE) for t in template.tensors)
    )
