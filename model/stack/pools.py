"""V: a pool for each device and stream."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..records import Graph, Observation, Op

if TYPE_CHECKING:
    from . import Stack


class Pools:
    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def step(self, op: Op) -> Observation:
        return self.stack.misuse()

    def take(self, number: int, graph: Graph) -> bool:
        """Takes the scratch of allocator `number` to compute a graph; False, nothing taken, where it cannot be had."""
        return True

    def give(self) -> None:
        """Gives back what `take` took."""

    def add(self, obs: Observation, op: Op) -> Observation:
        return replace(obs, pooled=(0,) * len(self.stack.setup.types))
