"""The reference of the subject interface, from native/include/gallocheck.h and its comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from .code import PACKAGE
from .markdown import fence, page, prose, table

HEADER = "native/include/gallocheck.h"
_ITEM = re.compile(
    r"(?P<comment>/\*(?:[^*]|\*(?!/))*\*/\s*)?"
    r"(?P<code>enum \{.*?\n\};"
    r"|typedef struct (?P<name>\w+) \{.*?\n\} \w+;"
    r"|(?:typedef struct|\w+ \*? ?|[\w ]+?\*?\s*)gc_\w+[^{};]*;)",
    re.S,
)
_FIELD = re.compile(r"^\s+(?P<type>[\w ]+?)\s+(?P<name>\w+)(?P<array>(?:\[\d+\])*);\s*(?P<rest>.*)$")
_VALUE = re.compile(r"^\s+(?P<name>GC_\w+)\s*=\s*(?P<value>-?\d+),?\s*(?P<rest>.*)$")


@cache
def header() -> str:
    return (PACKAGE / HEADER).read_text()


def words(comment: str) -> str:
    """A comment without its stars."""
    return " ".join(line.strip(" */\t") for line in comment.splitlines()).strip()


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def rows_of(code: str, pattern: re.Pattern[str]) -> list[tuple[str, str, str]]:
    """(name, type or value, comment) of each line of an enum or struct."""
    found: list[tuple[str, str, str]] = []
    for line in code.splitlines():
        if match := pattern.match(line):
            kind = match["value"] if pattern is _VALUE else match["type"] + match["array"]
            found.append((match["name"], kind, words(match["rest"])))
        elif found and line.strip() and not line.lstrip().startswith(("/*", "}")):
            name, kind, before = found[-1]  # the comment goes on
            found[-1] = (name, kind, f"{before} {words(line)}")
    return found


@cache
def items() -> tuple[tuple[str, str, str], ...]:
    """(comment, code, name of a struct or '') of everything that the header declares."""
    body = header().split('extern "C" {', 1)[1].split("#endif", 1)[1]
    return tuple(
        (words(m["comment"] or ""), m["code"].strip(), m["name"] or "") for m in _ITEM.finditer(body)
    )


def comments(struct: str) -> dict[str, str]:
    """What the header says of each field of a struct; {} of none."""
    code = next((code for _, code, name in items() if name and name == struct), "")
    return {name: says for name, _, says in rows_of(code, _FIELD)}


def interface_page() -> str:
    declared = set(re.findall(r"^(?!\s)[\w ]+?\*?\s*(gc_\w+)\(", header(), re.M))
    shown: set[str] = set()
    top = header().split("*/", 1)[0].removeprefix("/* gallocheck.h: ")
    parts = ["# The subject interface", f"From `{HEADER}`. {prose(sentence(words(top)))}"]
    for comment, code, name in items():
        parts += one(comment, code, name)
        shown |= set(re.findall(r"(gc_\w+)\(", code))
    if declared - shown:
        raise ValueError(
            f"{HEADER} declares {', '.join(sorted(declared - shown))}, which the page does not show"
        )
    return page(*parts)


def one(comment: str, code: str, name: str) -> Iterator[str]:
    if code.startswith("enum"):
        found = rows_of(code, _VALUE)
        yield f"## {prose(found[0][0])} to {prose(found[-1][0])}"
        if comment:
            yield prose(comment)
        yield table(["name", "value", "meaning"], [[f"`{n}`", v, prose(says)] for n, v, says in found])
    elif name:
        yield f"## {prose(name)}"
        if comment:
            yield prose(comment)
        rows = [[f"`{n}`", f"`{kind}`", prose(says)] for n, kind, says in rows_of(code, _FIELD)]
        yield table(["field", "type", "meaning"], rows)
    elif "(" in code:
        yield f"## {prose(re.findall(r'(gc_[a-z]+)[(]', code)[0])}"
        if comment:
            yield prose(comment)
        yield fence(code, "c")
