"""C: allocators that are driven through a scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..records import Observation, Op

if TYPE_CHECKING:
    from . import Stack


class Schedulers:
    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def has(self, number: int) -> bool:
        """Whether allocator `number` is this layer's."""
        return False

    def step(self, op: Op) -> Observation:
        return self.stack.misuse()

    def add(self, obs: Observation, op: Op) -> Observation:
        return obs
