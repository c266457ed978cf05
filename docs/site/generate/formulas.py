"""A node of terms.py as text: one line where it fits, else a conjunct a line; what comes twice gets a letter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from string import ascii_uppercase

from .terms import TRUE, Node

WIDTH = 86  #: of a line
LONG = 34  #: characters from which on what comes twice gets a letter
_TIGHT = {"and": 2, "or": 1, "if": 0}  # all else binds tighter
AND, OR = "\N{LOGICAL AND} ", "\N{LOGICAL OR} "
_WORDS = {"and": f" {AND}", "or": f" {OR}"}


def size(x: Node) -> int:
    return len(line(x))


def parts(x: Node) -> tuple[Node, ...]:
    """The nodes below."""
    sign, below = x
    if sign == "name":
        return ()
    if sign == "not":
        return (below,)
    return tuple(below[1:] if sign == "call" else below)


def rebuilt(x: Node, below: list[Node]) -> Node:
    sign, old = x
    if sign == "not":
        return sign, below[0]
    return sign, (old[0], *below) if sign == "call" else tuple(below)


def line(x: Node, outer: int = 0) -> str:
    """All on one line. `outer`: how tight what it stands in binds."""
    sign, below = x
    if sign == "name":
        return str(below)
    if sign == "not":
        return f"¬{line(below, 9)}"
    if sign == "call":
        return f"{below[0]}({', '.join(map(line, below[1:]))})"
    if sign == "if":
        c, a, b = below
        text = f"if {line(c)} then {line(a)} else {line(b)}"
        return f"({text})" if outer else text
    tight = _TIGHT.get(sign, 3 if sign in "=≠≤<≥>" else 4)
    text = _WORDS.get(sign, f" {sign} ").join(
        line(p, tight + (sign not in ("and", "or", "+"))) for p in below
    )
    return f"({text})" if tight < outer or (tight == outer and tight > 2 and sign != "+") else text


def lines(x: Node, indent: int = 0, first: str = "", outer: int = 0) -> Iterator[str]:
    """On as many lines as it takes; `first` stands before the first. `outer`: as of `line`."""
    whole = " " * indent + first + line(x, outer)
    if len(whole) <= WIDTH or x[0] in ("name", "not"):
        yield whole
        return
    lead = " " * len(first)
    if x[0] not in ("and", "or", "if"):
        yield from broken(x, indent, first, lead)
        return
    if x[0] == "if":
        c, a, b = x[1]
        yield from lines(c, indent, first + "if ")
        yield from lines(a, indent, lead + "then ")
        yield from lines(b, indent, lead + "else ")
        return
    mark, tight = (AND, 2) if x[0] == "and" else (OR, 1)
    for n, part in enumerate(x[1]):
        yield from lines(part, indent, (first if not n else lead) + mark, tight)


def broken(x: Node, indent: int, first: str, lead: str) -> Iterator[str]:
    """A comparison, sum or call that is too long for a line: a line for each of its parts."""
    sign, below = x
    if sign == "call":
        yield " " * indent + first + f"{below[0]}("
        for part in below[1:]:
            *most, last = lines(part, indent, lead + "  ")
            yield from (*most, last + ("," if part is not below[-1] else ""))
        yield " " * indent + lead + ")"
        return
    for n, part in enumerate(below):
        yield from lines(part, indent, first if not n else f"{lead}{sign} ", 4)


def lettered(roots: list[Node]) -> tuple[list[Node], list[tuple[str, Node]]]:
    """The nodes with letters for what comes more than once and is long, and what the letters stand for."""
    times: Counter[Node] = Counter()

    def count(x: Node) -> None:
        times[x] += 1
        if times[x] == 1:
            for part in parts(x):
                count(part)

    for root in roots:
        count(root)
    named: dict[Node, str] = {}
    where: list[tuple[str, Node]] = []
    kept: dict[Node, Node] = {}

    def shorten(x: Node) -> Node:
        if x not in kept:
            short = rebuilt(x, [shorten(p) for p in parts(x)]) if x[0] != "name" else x
            if times[x] > 1 and x not in roots and size(short) >= LONG and len(named) < len(LETTERS):
                named[x] = LETTERS[len(named)]
                where.append((named[x], short))
                short = ("name", named[x])
            kept[x] = short
        return kept[x]

    return [shorten(root) for root in roots], where


LETTERS = [*ascii_uppercase, *(f"{a}{b}" for a in "ABC" for b in ascii_uppercase)]


def claim(when: Node, then: Node, most: int = 60) -> str:
    """`when ⇒ then` as text; at most so many lines."""
    (a, b), where = lettered([when, then])
    flat = f"{line(a)}  ⇒  {line(b)}" if when != TRUE else line(b)
    text = [flat]
    if len(flat) > WIDTH:
        text = [*lines(a, 2), "⇒", *lines(b, 2)] if when != TRUE else list(lines(b))
    return "\n".join(cut([*text, *explained(where)], most))


def meaning(word: str, node: Node, most: int = 24) -> str:
    """`word = node` as text."""
    (short,), where = lettered([node])
    text = list(lines(short, 0, f"{word} = "))
    if len(text) > 1 and node[0] in ("and", "or", "if"):
        text = [f"{word} =", *lines(short, 4)]
    return "\n".join(cut([*text, *explained(where)], most))


def explained(where: list[tuple[str, Node]]) -> list[str]:
    """What the letters stand for."""
    return ["  where", *(x for name, node in where for x in lines(node, 4, f"{name} = "))] if where else []


def cut(text: list[str], most: int) -> list[str]:
    """At most so many lines, and how many more there are."""
    return text if len(text) <= most else [*text[:most], f"… and {len(text) - most} lines more"]


def used(roots: list[Node], words: Mapping[str, Node]) -> list[str]:
    """The words that the nodes use, and those that these are made of, in the order in which they come."""
    found: dict[str, None] = {}

    def look(x: Node) -> None:
        sign, below = x
        if sign == "name" and below in words and below not in found:
            found[below] = None
            look(words[below])
        for part in parts(x):
            look(part)

    for root in roots:
        look(root)
    return list(found)
