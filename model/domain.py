"""The small language that every rule of the model is written in.

Values bring their own `+ - == < > <= >=`. A domain adds what Python will not
let a type overload: choice, and/or/not, maximum, a switch on an operation's
kind, and rounding up. There are three domains: `Ints` here (one trace of plain
values), `Lanes` in lanes.py (many traces at once) and `Terms` in terms.py
(all traces, as formulas).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Protocol

Value = Any  #: an int or bool, an array of them, or a Z3 term
Tree = Any  #: a value, or a (named) tuple of trees
Arm = Callable[[], Tree]  #: a result that is worked out only where it is needed


class Domain(Protocol):
    """What a rule may ask of its values, beside arithmetic and comparison."""

    def all(self, *xs: Value) -> Value:
        """And."""

    def any(self, *xs: Value) -> Value:
        """Or."""

    def inv(self, x: Value, /) -> Value:
        """Not."""

    def max(self, a: Value, b: Value, /) -> Value:
        """The larger of two numbers."""

    def ite(self, c: Value, a: Tree, b: Tree) -> Tree:
        """`a` where `c` holds, else `b`; both are trees of one shape."""

    def choose(self, c: Value, a: Arm, b: Arm) -> Tree:
        """As `ite`, with arms that `Ints` works out only where they are taken."""

    def switch(self, code: Value, arms: Mapping[int, Arm], other: Arm) -> Tree:
        """The arm named `code`, `other` where there is none."""

    def roundup(self, x: Value, unit: Value) -> Value:
        """The smallest multiple of `unit` (bytes, positive) that is at least `x`."""


def merge(f: Callable[[Value, Value], Value], a: Tree, b: Tree) -> Tree:
    """Map `f` over the leaves of two equal-shaped trees; untouched parts cost nothing."""
    if a is b:
        return a
    if isinstance(a, tuple):
        parts = [merge(f, x, y) for x, y in zip(a, b, strict=True)]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    return f(a, b)


class Ints:
    """Plain ints and bools: choices are taken, never merged."""

    @staticmethod
    def all(*xs: Value) -> Value:
        return all(xs)

    @staticmethod
    def any(*xs: Value) -> Value:
        return any(xs)

    inv = staticmethod(operator.not_)

    @staticmethod
    def max(a: Value, b: Value) -> Value:
        return a if a > b else b

    @staticmethod
    def ite(c: Value, a: Tree, b: Tree) -> Tree:
        return a if c else b

    @staticmethod
    def choose(c: Value, a: Arm, b: Arm) -> Tree:
        return a() if c else b()

    @staticmethod
    def switch(code: Value, arms: Mapping[int, Arm], other: Arm) -> Tree:
        return arms.get(code, other)()

    @staticmethod
    def roundup(x: Value, unit: Value) -> Value:
        return -(-x // unit) * unit


class Merging:
    """Base of the domains that work out every arm and merge the results leaf by leaf."""

    def chooser(self, c: Value) -> Callable[[Value, Value], Value]:
        """A function that picks its first argument where `c` holds, else its second."""
        raise NotImplementedError

    def ite(self, c: Value, a: Tree, b: Tree) -> Tree:
        if isinstance(c, bool):
            return a if c else b
        return merge(self.chooser(c), a, b)

    def choose(self, c: Value, a: Arm, b: Arm) -> Tree:
        if isinstance(c, bool):
            return a() if c else b()
        return self.ite(c, a(), b())

    def switch(self, code: Value, arms: Mapping[int, Arm], other: Arm) -> Tree:
        if isinstance(code, int):
            return arms.get(code, other)()
        out = other()
        for k, arm in arms.items():
            out = self.ite(code == int(k), arm(), out)
        return out
