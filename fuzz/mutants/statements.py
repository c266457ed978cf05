"""Slips of whole statements and conditions, and all slips of a source."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .operators import Code, Mutation, expressions, read, rounding

_CONTROL = {
    "if", "for", "while", "do", "switch", "else", "case", "default", "return", "goto", "try", "catch",
    "struct", "class", "enum", "union", "using", "typedef", "namespace", "template", "public", "private",
    "protected", "static", "const", "constexpr", "inline", "extern", "auto", "friend", "static_assert",
    "int", "bool", "void", "char", "unsigned", "float", "double", "long", "volatile", "explicit",
}  # fmt: skip
_DECLARES = re.compile(
    r"(?:\[\[.*?\]\]\s*)?[A-Za-z_][\w:]*\b(?:<[^;=]*?>)?(?:::\w+\b)*(?:\s+|\s*[*&]+\s*)[A-Za-z_]\w*\s*[;=({\[,:]"
)
_FREES = re.compile(
    r"\b(?:delete|\w*free\w*|\w*release\w*|\w*reset|\w*unmap\w*|\w*destroy\w*|erase|let_go)\b"
)
_RESETS = re.compile(
    r"=\s*(?:0|false|nullptr|NULL|-1|\{\s*\}|{}|\w+\s*\{\s*\})\s*;?$|\b(?:clear|reset|fill|memset|assign)\b"
)
_STEPS = re.compile(r"\+\+|--|[-+]=")
_CHECKS = re.compile(r"(?:GGML_ASSERT|GGML_ABORT|must)\b")
_JUMPS = {"break", "continue", "goto"}  # and a return without a value: one with a value leaves none behind
_LITERALS = {"true", "false", "nullptr", "NULL", "0"}  # other operators change these


def mutations(text: str, cpp: bool) -> list[Mutation]:
    """Every slip of a source, in its order; none twice."""
    c = read(text)
    found: dict[Mutation, None] = {}
    for i in range(len(c.code)):
        if not c.out[i]:
            for m in (*expressions(c, i), *rounding(c, i), *_statement(c, i, cpp), *_condition(c, i)):
                found[m] = None
    changes = {(m.begin, m.end, m.new): m for m in reversed(found)}
    return sorted(changes.values(), key=lambda m: (m.begin, m.end, m.new))


def _begins(c: Code, i: int) -> bool:
    """Whether a statement begins at token i."""
    before = c.at(i - 1)
    if c.inside[i] != "{" or c.at(i) == "{":
        return False
    if before in {";", "{", "}", "else", "do"}:
        return True
    if before == ")":
        opens = c.pair.get(i - 1, 0)
        return c.at(opens - 1) in {"if", "for", "while", "switch", "constexpr"}
    return before == ":" and c.at(i - 2) == "default"


def _semicolon(c: Code, i: int) -> int:
    """The ';' that ends the statement at i; -1 where it is no plain statement."""
    while i < len(c.code) and c.at(i) not in {")", "]", "}"}:
        if c.at(i) == ";":
            return i
        i = c.pair.get(i, i) + 1 if c.at(i) in {"(", "[", "{"} else i + 1
    return -1


def _statement(c: Code, i: int, cpp: bool) -> Iterator[Mutation]:
    """A statement is not there; another value is returned."""
    if not _begins(c, i) or (end := _semicolon(c, i)) < 0 or end == i:
        return
    words = c.text[c.code[i].begin : c.code[end].begin]
    first = c.at(i)
    if first == "return" and end > i + 1 and c.code[end - 1].text not in _LITERALS:
        yield c.span("other return value", i + 1, end - 1, "{}" if cpp else "0")
    if first in _JUMPS or words == "return":
        yield c.span("drop a jump", i, end - 1, "")
    if (
        first in _CONTROL
        or first == "["
        or _CHECKS.match(words)
        or (_DECLARES.match(words + ";") and first != "delete")
    ):
        return
    yield c.span(_name(words), i, end - 1, "")


def _name(words: str) -> str:
    """What is lost with a statement."""
    if _RESETS.search(words):
        pointer = "nullptr" in words or "NULL" in words
        return "keep an old pointer" if pointer else "drop a reset"
    if _FREES.search(words):
        return "lose what should be freed"
    return "drop a counter step" if _STEPS.search(words) else "drop a statement"


def _condition(c: Code, i: int) -> Iterator[Mutation]:
    """The condition of an if or while is turned, or always the same."""
    if c.at(i) not in {"if", "while"} or c.at(i + 1) != "(" or i + 1 not in c.pair:
        return
    close = c.pair[i + 1]
    inner = c.text[c.code[i + 1].end : c.code[close].begin]
    if any(c.at(k) == ";" for k in range(i + 2, close)) or re.search(r"[^=!<>]=[^=]", inner):
        return  # it declares something
    one_sign = not re.search(r"&&|\|\|", inner) and re.search(r"^\s*!| [<>]=? |[!=]=", inner)
    if not one_sign:  # else other operators turn it
        yield c.span("turn a condition", i + 1, close, f"(!({inner}))")
    if c.at(i) == "if":
        yield c.span("condition is constant", i + 1, close, "(true)")
        yield c.span("condition is constant", i + 1, close, "(false)")
