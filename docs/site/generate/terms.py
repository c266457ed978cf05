"""Z3 terms as small trees for people: flat conjunctions, negation at the leaves, `max` and names in place of numbers.

A node is (sign, parts): ("and", nodes), ("=", (a, b)), ("if", (c, a, b)), ("name", text), ... Equal terms are equal nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import z3

Node = tuple[str, Any]

TRUE: Node = ("name", "true")
FALSE: Node = ("name", "false")
_OPPOSITE = {"=": "≠", "≠": "=", "≤": ">", ">": "≤", "<": "≥", "≥": "<"}
_COMPARED = {
    z3.Z3_OP_EQ: "=", z3.Z3_OP_DISTINCT: "≠", z3.Z3_OP_LE: "≤", z3.Z3_OP_LT: "<", z3.Z3_OP_GE: "≥", z3.Z3_OP_GT: ">",
}  # fmt: skip
_ARITHMETIC = {
    z3.Z3_OP_ADD: "+", z3.Z3_OP_SUB: "-", z3.Z3_OP_MUL: "*", z3.Z3_OP_IDIV: "÷", z3.Z3_OP_MOD: "mod",
    z3.Z3_OP_UMINUS: "minus",
}  # fmt: skip


class Reader:
    """`name(variable)`: what a variable is called; `constant(variable, n)`: what the number n, which it is compared
    with, is called ('' where it is just a number). `words`: terms that have a name of their own, by id.

    `meaning`: what the words that were met stand for."""

    def __init__(
        self,
        name: Callable[[str], str],
        constant: Callable[[str, int], str],
        words: Mapping[int, tuple[Any, str]] | None = None,
    ) -> None:
        self.name, self.constant, self.words = name, constant, words or {}
        self.known: dict[int, tuple[Any, Node]] = {}
        self.meaning: dict[str, Node] = {}

    def node(self, x: Any) -> Node:
        """The term as a tree; Python's own values too."""
        if isinstance(x, bool):
            return TRUE if x else FALSE
        if isinstance(x, int):
            return "name", str(x)
        number = x.get_id()
        if number not in self.known:
            self.known[number] = (x, self._named(x))  # a term that is kept keeps its id
        return self.known[number][1]

    def _named(self, x: Any) -> Node:
        node = self._read(x)
        if x.get_id() not in self.words or node in (TRUE, FALSE) or node[0] in ("name", "not"):
            return node
        word = self.words[x.get_id()][1]
        self.meaning[word] = node
        return "name", word

    def _read(self, x: Any) -> Node:
        kind, parts = x.decl().kind(), x.children()
        if z3.is_true(x) or z3.is_false(x):
            return TRUE if z3.is_true(x) else FALSE
        if z3.is_int_value(x):
            return "name", str(x.as_long())
        if z3.is_const(x):
            return "name", self.name(str(x))
        if kind == z3.Z3_OP_NOT:
            return inverse(self.node(parts[0]))
        if kind in (z3.Z3_OP_AND, z3.Z3_OP_OR):
            return joined("and" if kind == z3.Z3_OP_AND else "or", [self.node(p) for p in parts])
        if kind == z3.Z3_OP_IMPLIES:
            return joined("or", [inverse(self.node(parts[0])), self.node(parts[1])])
        if kind == z3.Z3_OP_ITE:
            return chosen(*map(self.node, parts))
        if kind in _COMPARED:
            return self._compared(_COMPARED[kind], *parts)
        if kind in _ARITHMETIC:
            return arithmetic(_ARITHMETIC[kind], [self.node(p) for p in parts])
        return "call", (x.decl().name(), *map(self.node, parts))

    def _compared(self, sign: str, a: Any, b: Any) -> Node:
        named = [(p, q) for p, q in ((a, b), (b, a)) if z3.is_const(p) and z3.is_int_value(q)]
        if sign in "=≠" and named:
            variable, number = named[0]
            if words := self.constant(str(variable), number.as_long()):
                return sign, (self.node(variable), ("name", words))
        left, right = self.node(a), self.node(b)
        if sign in "=≠" and z3.is_bool(a):
            return equivalent(sign, left, right)
        return (TRUE if sign in "=≤≥" else FALSE) if left == right else (sign, (left, right))


def equivalent(sign: str, a: Node, b: Node) -> Node:
    """Two truth values are the same, or not."""
    for x, y in ((a, b), (b, a)):
        if x in (TRUE, FALSE):
            return y if (x == TRUE) == (sign == "=") else inverse(y)
    return sign, (a, b)


def inverse(x: Node) -> Node:
    """Not x, with the negation as far inside as it goes."""
    sign, parts = x
    if x in (TRUE, FALSE):
        return FALSE if x == TRUE else TRUE
    if sign in _OPPOSITE:
        return _OPPOSITE[sign], parts
    if sign in ("and", "or"):
        return joined("or" if sign == "and" else "and", [inverse(p) for p in parts])
    if sign == "if":
        c, a, b = parts
        return chosen(c, inverse(a), inverse(b))
    return parts if sign == "not" else ("not", x)


def joined(sign: str, parts: list[Node]) -> Node:
    """And, or: flat, each part once, without what says nothing."""
    neutral, last = (TRUE, FALSE) if sign == "and" else (FALSE, TRUE)
    flat = [q for p in parts for q in (p[1] if p[0] == sign else [p])]
    kept = list(dict.fromkeys(p for p in flat if p != neutral))
    if last in kept or any(inverse(p) in kept for p in kept if p[0] in _OPPOSITE or p[0] in ("not", "name")):
        return last
    return neutral if not kept else kept[0] if len(kept) == 1 else (sign, tuple(kept))


def chosen(c: Node, a: Node, b: Node) -> Node:
    """`a` where `c` holds, else `b`."""
    if a == b or c in (TRUE, FALSE):
        return b if c == FALSE else a
    if TRUE in (a, b) or FALSE in (a, b):
        if a == TRUE or b == FALSE:
            return joined("or", [c, b]) if a == TRUE else joined("and", [c, a])
        return joined("and", [inverse(c), b]) if a == FALSE else joined("or", [inverse(c), a])
    if c[0] in (">", "≥") and c[1] == (a, b):
        return "call", ("max", a, b)
    return "if", (c, a, b)


def arithmetic(sign: str, parts: list[Node]) -> Node:
    """Sums without zeros."""
    if sign == "minus":
        return "-", (("name", "0"), parts[0])
    if sign == "+":
        flat = [q for p in parts for q in (p[1] if p[0] == "+" else [p])]
        kept = [p for p in flat if p != ("name", "0")]
        return ("name", "0") if not kept else kept[0] if len(kept) == 1 else ("+", tuple(kept))
    if sign == "-" and parts[1] == ("name", "0"):
        return parts[0]
    return sign, tuple(parts)
