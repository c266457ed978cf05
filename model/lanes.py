"""The domain of many traces in lockstep: every value is a NumPy array, one lane a trace.

int64 throughout (uint64 mixed with int64 becomes float64 in silence), so sizes
and capacities must stay below 2**63. `spread` makes arrays of a whole tree at
the start; a Python bool or int left in it would be merged under the wrong type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from .domain import Merging, Tree, Value


class Lanes(Merging):
    """NumPy arrays of shape [lane]; bool or int64."""

    @staticmethod
    def all(*xs: Value) -> Value:
        return reduce(np.logical_and, xs, True)

    @staticmethod
    def any(*xs: Value) -> Value:
        return reduce(np.logical_or, xs, False)

    inv = staticmethod(np.logical_not)
    max = staticmethod(np.maximum)

    def chooser(self, c: Value) -> Callable[[Value, Value], Value]:
        """Masks take under 1 ns a lane where `np.where`, which branches, takes 2 to 5."""
        mask = -np.asarray(c).astype(np.int64)

        def choose(a: Value, b: Value) -> Value:
            m = c if _is_bool(a) and _is_bool(b) else mask
            return ((a ^ b) & m) ^ b

        return choose

    @staticmethod
    def roundup(x: Value, unit: Value) -> Value:
        """For units that are powers of two, as granularities are: a division takes ten times as long."""
        return (x + (unit - 1)) & -unit


def _is_bool(x: Any) -> bool:
    return isinstance(x, bool) or getattr(x, "dtype", None) == np.bool_


def spread(tree: Tree, lanes: int) -> Tree:
    """The same tree with every leaf an array of `lanes` equal values."""
    if isinstance(tree, tuple):
        parts = [spread(x, lanes) for x in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return np.full(lanes, tree, bool if isinstance(tree, bool) else np.int64)


def stack(trees: list[Tree]) -> Tree:
    """One tree of arrays from one tree a lane."""
    first = trees[0]
    if isinstance(first, tuple):
        parts = [stack([t[i] for t in trees]) for i in range(len(first))]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    return np.array(trees, bool if isinstance(first, bool) else np.int64)


def lane(tree: Tree, i: int) -> Tree:
    """The plain values of one lane."""
    if isinstance(tree, tuple):
        parts = [lane(x, i) for x in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return tree[i].item() if isinstance(tree, np.ndarray) and tree.ndim else tree
