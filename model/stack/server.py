"""T: a server with slots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..records import Observation, Op

if TYPE_CHECKING:
    from . import Stack


class Server:
    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def step(self, op: Op) -> Observation:
        return self.stack.misuse()

    def add(self, obs: Observation, op: Op) -> Observation:
        return obs
