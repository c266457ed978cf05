"""Formulas for the branches of the model: under which condition an operation comes by which way."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ..model.domain import Arm, Tree, Value
from ..model.terms import Terms
from .branches import Site, Way, site


class Noting(Terms):
    """Terms that note under which condition each way is taken: `noted`, a list a way, one for each time that the
    model comes there. What lies in an arm is reached only where the arm is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: dict[Way, list[Value]] = {}
        self._path: list[Value] = []
        self._sites: dict[tuple[Any, int], Site | None] = {}

    def _site(self) -> Site | None:
        caller = sys._getframe(2)
        key = (caller.f_code, caller.f_lasti)
        if key not in self._sites:
            self._sites[key] = site(*key)
        return self._sites[key]

    def _note(self, at: Site | None, arm: int, c: Value) -> None:
        if at is not None:
            conditions = self.noted.setdefault(Way(at, arm), [])
            reached = self.all(*self._path, c)
            if reached is not False:
                conditions.append(reached)

    def _under(self, c: Value, arm: Arm) -> Tree:
        self._path.append(c)
        try:
            return arm()
        finally:
            self._path.pop()

    def ite(self, c: Value, a: Tree, b: Tree) -> Tree:
        at = self._site()
        self._note(at, 1, c)
        self._note(at, 0, self.inv(c))
        return super().ite(c, a, b)

    def choose(self, c: Value, a: Arm, b: Arm) -> Tree:
        at, other = self._site(), self.inv(c)
        self._note(at, 1, c)
        self._note(at, 0, other)
        if isinstance(c, bool):
            return a() if c else b()
        return super().ite(c, self._under(c, a), self._under(other, b))

    def switch(self, code: Value, arms: Mapping[int, Arm], other: Arm) -> Tree:
        at = self._site()
        taken = {int(k): code == int(k) for k in arms}
        none = self.all(*map(self.inv, taken.values()))
        for k, c in ((-1, none), *taken.items()):
            self._note(at, k, c)
        if isinstance(code, int):
            return arms.get(code, other)()
        out = self._under(none, other)
        for k, arm in arms.items():
            out = super().ite(taken[int(k)], self._under(taken[int(k)], arm), out)
        return out
