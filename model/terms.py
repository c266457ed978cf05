"""The domain of all traces at once: every value is a Z3 term (or a plain constant).

Rounding up to a granularity that is a term is an uninterpreted function, as Z3
does badly with division by a variable. What is known of it is added as axioms
over the applications that occur: `x <= r(x)` and `r(0) = 0`; that it is monotone
is there to be added, but no proof needs it. With a granularity that is a plain
int it is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import z3

from .domain import Merging, Tree, Value


class Terms(Merging):
    """Z3 terms. One instance a problem: it collects the problem's axioms."""

    def __init__(self) -> None:
        self._round = z3.Function("rounded", z3.IntSort(), z3.IntSort(), z3.IntSort())
        self._rounded: list[tuple[Any, Any, Any]] = []
        self._seen: dict[tuple[int, int], tuple[Any, Any, Any]] = {}

    @staticmethod
    def all(*xs: Value) -> Value:
        terms = [x for x in xs if x is not True]
        if any(x is False for x in terms):
            return False
        return True if not terms else terms[0] if len(terms) == 1 else z3.And(*terms)

    @staticmethod
    def any(*xs: Value) -> Value:
        terms = [x for x in xs if x is not False]
        if any(x is True for x in terms):
            return True
        return False if not terms else terms[0] if len(terms) == 1 else z3.Or(*terms)

    @staticmethod
    def inv(x: Value) -> Value:
        return (not x) if isinstance(x, bool) else z3.Not(x)

    def chooser(self, c: Value) -> Callable[[Value, Value], Value]:
        def choose(a: Value, b: Value) -> Value:
            if isinstance(a, bool) and isinstance(b, bool) and a != b:
                return c if a else z3.Not(c)
            return a if _same(a, b) else z3.If(c, a, b)

        return choose

    def max(self, a: Value, b: Value) -> Value:
        if isinstance(a, int) and isinstance(b, int):
            return a if a > b else b
        return self.ite(a > b, a, b)

    def roundup(self, x: Value, unit: Value) -> Value:
        if isinstance(unit, int):
            return _exact(x, unit)
        x = z3.IntVal(x) if isinstance(x, int) else x
        return self._apply(x, unit)

    def _apply(self, x: Value, unit: Value) -> Value:
        """`rounded(unit, x)`; inside a choice, so that axioms are about the parts that can be chosen."""
        key = (unit.get_id(), x.get_id())
        if key not in self._seen:
            self._seen[key] = (unit, x, self._new(x, unit))  # terms that are kept keep their ids
        return self._seen[key][2]

    def _new(self, x: Value, unit: Value) -> Value:
        if z3.is_app_of(x, z3.Z3_OP_ITE):
            c, a, b = x.children()
            return z3.If(c, self._apply(a, unit), self._apply(b, unit))
        if z3.is_int_value(x) and x.as_long() == 0:
            return x
        rounded = self._round(unit, x)
        self._rounded.append((unit, x, rounded))
        return rounded

    def axioms(self) -> list[Any]:
        """What every proof knows of the applications so far: never smaller, and nothing stays nothing."""
        return [f for _, x, r in self._rounded for f in (r >= x, z3.Implies(x == 0, r == 0))]

    def monotone(self) -> list[Any]:
        """That a larger size is not rounded to less; asked for where a counterexample must make sense."""
        pairs = permutations(self._rounded, 2)
        return [z3.Implies(x <= y, r <= q) for (u, x, r), (v, y, q) in pairs if u.eq(v)]


def _exact(x: Value, unit: int) -> Value:
    """Rounding by a granularity that is known."""
    if unit == 1:
        return x
    return -(-x // unit) * unit if isinstance(x, int) else (x + (unit - 1)) / unit * unit


def _same(a: Value, b: Value) -> bool:
    if z3.is_expr(a) and z3.is_expr(b):
        return bool(a.eq(b))
    return not z3.is_expr(a) and not z3.is_expr(b) and type(a) is type(b) and a == b


def fresh(shape: Tree, name: str) -> Tree:
    """A tree of new variables shaped like `shape` (bool: Bool, int: Int), named after their fields."""
    if isinstance(shape, tuple):
        fields = getattr(shape, "_fields", range(len(shape)))
        parts = [fresh(x, f"{name}.{f}") for f, x in zip(fields, shape, strict=True)]
        return type(shape)(*parts) if hasattr(shape, "_fields") else tuple(parts)
    return z3.Bool(name) if isinstance(shape, bool) else z3.Int(name)


def equal(a: Tree, b: Tree) -> list[Any]:
    """Leaf by leaf: `a` equals `b`."""
    if isinstance(a, tuple):
        return [e for x, y in zip(a, b, strict=True) for e in equal(x, y)]
    return [] if a is b else [a == b]


def leaves(tree: Tree) -> list[Value]:
    """All leaves of a tree, in order."""
    return [x for part in tree for x in leaves(part)] if isinstance(tree, tuple) else [tree]


def shaped(shape: Tree, values: Iterator[int]) -> Tree:
    """A tree of plain values shaped like `shape`, of its leaves in order."""
    if isinstance(shape, tuple):
        parts = [shaped(x, values) for x in shape]
        return type(shape)(*parts) if hasattr(shape, "_fields") else tuple(parts)
    return bool(next(values)) if isinstance(shape, bool) else next(values)


def value(model: Any, tree: Tree) -> Tree:
    """The plain values that a Z3 model gives a tree of terms."""
    if isinstance(tree, tuple):
        parts = [value(model, x) for x in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    if not z3.is_expr(tree):
        return tree
    v = model.eval(tree, model_completion=True)
    return z3.is_true(v) if z3.is_bool(v) else v.as_long()
