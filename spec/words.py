"""A state, operation or result in words where a machine brings none of its own."""

from __future__ import annotations

from ..model.domain import Tree


def describe(tree: Tree) -> str:
    """`tokens 3, attached, cells (8, 16)`: fields by name; what is 0 or false is left out."""
    if not hasattr(tree, "_fields"):
        return _value(tree)
    parts = [_field(name, x) for name, x in zip(tree._fields, tree, strict=True) if not _nothing(x)]
    return ", ".join(parts)


def _field(name: str, x: Tree) -> str:
    name = name.replace("_", " ")
    return name if x is True else f"{name} {_value(x)}"


def _value(x: Tree) -> str:
    if not isinstance(x, tuple):
        return {True: "yes", False: "no"}.get(x, str(x)) if isinstance(x, bool) else str(x)
    if hasattr(x, "_fields"):
        return f"({describe(x)})"
    return "(" + " ".join(map(_value, x)) + ")"


def _nothing(x: Tree) -> bool:
    return all(map(_nothing, x)) if isinstance(x, tuple) else not x
