"""What is changed in a source: small slips, each at one place.

Nothing is changed in comments, texts, preprocessor lines, assertions that a release compiles out, messages
for people, and lines that only a planted defect runs (GC_PLANTED).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from .lex import Token, partners, tokens


class Mutation(NamedTuple):
    """text[begin:end] becomes `new`. `operator`: in a few words, what kind of slip it is."""

    operator: str
    begin: int
    end: int
    new: str

    def of(self, text: str) -> str:
        """The file with the slip; its lines keep their numbers."""
        lost = text.count("\n", self.begin, self.end) - self.new.count("\n")
        return text[: self.begin] + self.new + "\n" * lost + text[self.end :]


class Code(NamedTuple):
    """A source as its operators see it. `pair`: lex.partners. `inside`: by token, the bracket that it is in.
    `out`: by token, whether it is left alone."""

    text: str
    code: list[Token]
    pair: dict[int, int]
    inside: list[str]
    out: list[bool]

    def at(self, i: int) -> str:
        """The text of token i, '' outside the file."""
        return self.code[i].text if 0 <= i < len(self.code) else ""

    def span(self, operator: str, first: int, last: int, new: str) -> Mutation:
        """Tokens first..last become `new`."""
        return Mutation(operator, self.code[first].begin, self.code[last].end, new)


_OPEN, _CLOSE = {"(", "[", "{"}, {")", "]", "}"}
_QUIET = re.compile(r"GGML_LOG_\w+|AT_PRINTF|f?printf|assert|static_assert|_Static_assert|GGML_UNUSED")


def read(text: str) -> Code:
    """Reads a source; what is left alone is marked."""
    code = tokens(text)
    pair = partners(code)
    found = Code(text, code, pair, _inside(code, pair), [False] * len(code))
    for i, t in enumerate(code):
        if t.kind == "name" and _QUIET.fullmatch(t.text) and found.at(i + 1) == "(":
            _leave(found, i, found.pair.get(i + 1, i))
        if t.text == "if" and (end := _planted_only(found, i)):
            _leave(found, i, end)
    return found


def _inside(code: list[Token], pair: dict[int, int]) -> list[str]:
    found, open_ = [""] * len(code), [""]
    for i, t in enumerate(code):
        if i in pair and pair[i] < i:
            open_.pop()
        found[i] = open_[-1]
        if i in pair and pair[i] > i:
            open_.append(t.text)
    return found


def _leave(c: Code, first: int, last: int) -> None:
    c.out[first : last + 1] = [True] * (last + 1 - first)


def _planted_only(c: Code, i: int) -> int:
    """Where an `if` that only a planted defect enters ends; 0 where it is another."""
    if c.at(i + 2) != "GC_PLANTED" or i + 1 not in c.pair:
        return 0
    close = c.pair[i + 1]
    alone = [k for k in range(i + 2, close) if c.at(k) == "||"]
    return 0 if alone else _statement_end(c, close + 1)


def _statement_end(c: Code, i: int) -> int:
    """The last token of the statement that begins at i: its ';' or '}'."""
    while i < len(c.code):
        if c.at(i) == "{" or c.at(i) == ";":
            return c.pair.get(i, i)
        i = c.pair.get(i, i) + 1 if c.at(i) in _OPEN else i + 1
    return len(c.code) - 1


# Expressions

_RELATIONAL = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",),
}  # fmt: skip
_BINARY = {
    "+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "&",
    "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "|=": "&=", "&=": "|=", "<<=": ">>=", ">>=": "<<=",
}  # fmt: skip
_LOGICAL = {"&&": "||", "||": "&&"}
_NAMES = {
    "min": "max", "max": "min", "MIN": "MAX", "MAX": "MIN", "OWNER": "BORROWER", "BORROWER": "OWNER",
    "true": "false", "false": "true", "break": "continue", "continue": "break",
    "any_of": "all_of", "all_of": "any_of", "none_of": "any_of",
}  # fmt: skip
_KIND = {"OWNER": "swap roles", "BORROWER": "swap roles", "true": "constant", "false": "constant",
         "break": "break and continue", "continue": "break and continue"}  # fmt: skip
_ENDS = {",", ";", "?", ":", "=", "return", "+=", "-=", "|=", "&="}
_WORDS = {"return", "case", "throw", "delete", "sizeof", "else", "in", "co_return"}


def is_operand_end(c: Code, i: int) -> bool:
    """Whether an operand ends at token i, so that an operator behind it has two."""
    t = c.code[i]
    return t.text in {")", "]", "}"} or (t.kind in {"name", "number", "char"} and t.text not in _WORDS)


def spaced(c: Code, i: int) -> bool:
    """Whether blanks are on both sides: a comparison, then, no brackets of a template."""
    t = c.code[i]
    return c.text[t.begin - 1 : t.begin].isspace() and c.text[t.end : t.end + 1].isspace()


def expressions(c: Code, i: int) -> Iterator[Mutation]:
    """Other operators, constants and names."""
    t = c.code[i]
    two = i > 0 and is_operand_end(c, i - 1)
    if t.text in _RELATIONAL and two and (spaced(c, i) or len(t.text) == 2):
        weak, *rest = _RELATIONAL[t.text]
        yield c.span("weaken a comparison" if rest else "turn a comparison", i, i, weak)
        yield from (c.span("turn a comparison", i, i, other) for other in rest)
    if t.text in _BINARY and two and not _declares(c, i):
        yield c.span("other arithmetic", i, i, _BINARY[t.text])
    if t.text in {"++", "--"}:
        yield c.span("count the other way", i, i, "--" if t.text == "++" else "++")
    if t.text in _LOGICAL and two and t.kind == "op":
        yield c.span("and for or", i, i, _LOGICAL[t.text])
        yield from _without_operand(c, i)
    if t.text == "!":
        yield c.span("drop a negation", i, i, "")
    if t.text == "-" and not two and c.code[i + 1].kind == "number":
        yield c.span("constant", i, i, "")
    if t.kind == "number":
        yield from _constants(c, i)
    if t.kind == "name" and t.text in _NAMES:
        kind = _KIND.get(t.text, "swap min and max" if t.text.lower() in {"min", "max"} else "any for all")
        yield c.span(kind, i, i, _NAMES[t.text])
    if t.text == "?":
        first = _operand_begin(c, i, _ENDS)
        yield c.span("condition is constant", first, i, "true ?")
        yield c.span("condition is constant", first, i, "false ?")


def _declares(c: Code, i: int) -> bool:
    """Whether * or & belongs to a type: `const x & y`, `struct x * y`, `x_t * y`."""
    if c.at(i) not in {"*", "&"}:
        return False
    before = {
        "const",
        "struct",
        "auto",
        "void",
        "char",
        "int",
        "unsigned",
        "(",
        ",",
        "{",
        ";",
        "}",
        "::",
        "static",
    }
    return c.code[i - 1].kind == "name" and (c.at(i - 2) in before or c.at(i - 1).endswith("_t")) and (
        c.at(i - 2) not in {"(", ","} or c.at(i + 2) in {")", ",", ":"})  # fmt: skip


def _constants(c: Code, i: int) -> Iterator[Mutation]:
    digits = re.fullmatch(r"(\d+)([uUlL]*)", c.at(i))
    if digits is None:
        return
    n, suffix = int(digits[1]), digits[2]
    for other in (n + 1, n - 1):
        if other >= 0:
            yield c.span("constant off by one", i, i, f"{other}{suffix}")


def _operand_begin(c: Code, i: int, ends: set[str]) -> int:
    """The first token of the operand before token i."""
    i -= 1
    while i >= 0 and c.at(i) not in ends and c.at(i) not in _OPEN:
        i = c.pair.get(i, i) - 1 if c.at(i) in _CLOSE else i - 1
    return i + 1


def _operand_end(c: Code, i: int, ends: set[str]) -> int:
    """The last token of the operand behind token i."""
    i += 1
    while i < len(c.code) and c.at(i) not in ends and c.at(i) not in _CLOSE:
        i = c.pair.get(i, i) + 1 if c.at(i) in _OPEN else i + 1
    return i - 1


def _without_operand(c: Code, i: int) -> Iterator[Mutation]:
    """One side of && or || is not asked."""
    ends = _ENDS | ({"||"} if c.at(i) == "||" else {"&&", "||"})
    first, last = _operand_begin(c, i, ends), _operand_end(c, i, ends)
    if c.code[last].kind == "string":
        return  # the words of an assertion
    yield c.span("drop a condition", first, i, "")
    yield c.span("drop a condition", i, last, "")


# Rounding

_ROUNDS = re.compile(r"round\w*|real|GGML_PAD|aligned_offset|align\w*|pad_to|ceil_to")


def rounding(c: Code, i: int) -> Iterator[Mutation]:
    """A size that is not rounded up."""
    if c.code[i].kind == "name" and _ROUNDS.fullmatch(c.at(i)) and c.at(i + 1) == "(" and i + 1 in c.pair:
        close = c.pair[i + 1]
        commas = [k for k in _level(c, i + 2, close) if c.at(k) == ","]
        parts = list(zip([i + 2, *(k + 1 for k in commas)], [*commas, close], strict=True))
        first, end = parts[1 if c.at(i) == "aligned_offset" and len(parts) > 1 else 0]
        if first < end:
            inner = c.text[c.code[first].begin : c.code[end - 1].end]
            yield c.span("skip a rounding", _chain_begin(c, i), close, f"({inner})")
    if c.at(i) == "&" and c.at(i + 1) == "~":
        yield c.span("skip a rounding", i, _operand_end(c, i, _ENDS), "")
    if c.at(i) == "/":
        by = _chain_end(c, i + 1)
        times = by + 1
        if c.at(times) == "*":
            again = _chain_end(c, times + 1)
            if [c.at(k) for k in range(i + 1, by + 1)] == [c.at(k) for k in range(times + 1, again + 1)]:
                yield c.span("skip a rounding", i, again, "")


def _level(c: Code, first: int, end: int) -> Iterator[int]:
    """Tokens of [first, end) outside brackets."""
    i = first
    while i < end:
        yield i
        i = c.pair.get(i, i) + 1 if c.at(i) in _OPEN else i + 1


def _chain_begin(c: Code, i: int) -> int:
    """Where `a.b[c].name` begins that ends with token i."""
    while c.at(i - 1) in {".", "->", "::"}:
        i -= 2
        while c.at(i) in _CLOSE:
            i = c.pair.get(i, i) - 1
    return i


def _chain_end(c: Code, i: int) -> int:
    while c.at(i + 1) in {".", "->", "::"}:
        i += 2
    return i


def line_starts(text: str) -> list[int]:
    return [0, *(m.end() for m in re.finditer("\n", text))]


def number(starts: list[int], at: int) -> int:
    """The line, from 1 on, that character `at` is in."""
    return bisect_right(starts, at)
