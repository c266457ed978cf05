"""C and C++ as tokens: what is code, and where. Comments, preprocessor lines and blanks are none."""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<skip>//[^\n]*|/\*.*?\*/|(?:(?<=\n)|\A)[ \t]*\#(?:[^\n\\]|\\.)*|\n|[^\S\n]+)
  | (?P<string>(?:u8|[uUL])?R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
  | (?P<char>[uUL]?'(?:[^'\\\n]|\\.)+')
  | (?P<number>\.?\d(?:[eEpP][+-]|'?\w|\.)*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<op><=>|<<=|>>=|\.\.\.|->\*?|::|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
    """,
    re.X | re.S,
)
PAIRS = {"(": ")", "[": "]", "{": "}"}


class Token(NamedTuple):
    """`kind`: string, char, number, name or op. It is text[begin:end] of its file."""

    kind: str
    text: str
    begin: int
    end: int


def tokens(text: str) -> list[Token]:
    """The code of a source file, in order."""
    found = []
    for m in _TOKEN.finditer(text):
        kind = "string" if m.lastgroup == "d" else m.lastgroup or ""
        if kind != "skip":
            found.append(Token(kind, m.group(), m.start(), m.end()))
    return found


def partners(code: list[Token]) -> dict[int, int]:
    """By index of a bracket, the index of the one that it belongs to; brackets that match nothing are left out."""
    open_, found = [], dict[int, int]()
    for i, t in enumerate(code):
        if t.kind == "op" and t.text in PAIRS:
            open_.append(i)
        elif t.kind == "op" and t.text in PAIRS.values():
            # an #else doubles what opens: the nearest that fits is the one
            while open_ and PAIRS[code[open_[-1]].text] != t.text:
                open_.pop()
            if open_:
                k = open_.pop()
                found[k], found[i] = i, k
    return found


def line_of(text: str, at: int) -> int:
    """The number of the line, from 1 on."""
    return text.count("\n", 0, at) + 1
