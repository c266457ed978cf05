"""V: a pool for each device and stream."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..records import Observation, Op

if TYPE_CHECKING:
    from . import Stack


class Pools:
    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def step(self, op: Op) -> Observation:
        return self.stack.misuse()

    def add(self, obs: Observation, op: Op) -> Observation:
        return replace(obs, pooled=(0,) * len(self.stack.setup.types))
