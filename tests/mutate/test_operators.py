"""Slips of small texts: which are made, and where none may be."""

from __future__ import annotations

import pytest
from gallocheck.fuzz.mutants.lex import tokens
from gallocheck.fuzz.mutants.statements import mutations


def made(text: str, cpp: bool = True) -> set[tuple[str, str]]:
    """(operator, the changed text without blanks) of every slip of the body of a function."""
    whole = f"void f() {{\n{text}\n}}\n"
    return {(m.operator, "".join(m.of(whole).splitlines()[1:-1]).strip()) for m in mutations(whole, cpp)}


def becomes(text: str) -> set[str]:
    return {after for _, after in made(text)}


@pytest.mark.parametrize(
    ("text", "operator", "after"),
    [
        ("if (a < b) g();", "weaken a comparison", "if (a <= b) g();"),
        ("if (a > b) g();", "weaken a comparison", "if (a >= b) g();"),
        ("if (a < b) g();", "turn a comparison", "if (a >= b) g();"),
        ("if (a == b) g();", "turn a comparison", "if (a != b) g();"),
        ("x = a + b;", "other arithmetic", "x = a - b;"),
        ("x += b;", "other arithmetic", "x -= b;"),
        ("if (a && b) g();", "and for or", "if (a || b) g();"),
        ("if (a && b) g();", "drop a condition", "if ( b) g();"),
        ("if (a && b) g();", "drop a condition", "if (a ) g();"),
        ("if (a && b) g();", "turn a condition", "if (!(a && b)) g();"),
        ("if (a) g();", "condition is constant", "if (true) g();"),
        ("if (a) g();", "condition is constant", "if (false) g();"),
        ("if (!a) g();", "drop a negation", "if (a) g();"),
        ("x = a ? b : c;", "condition is constant", "x = true ? b : c;"),
        ("x = a[2];", "constant off by one", "x = a[3];"),
        ("x = a[2];", "constant off by one", "x = a[1];"),
        ("return true;", "constant", "return false;"),
        ("return a + b;", "other return value", "return {};"),
        ("while (a) break;", "break and continue", "while (a) continue;"),
        ("while (a) { b(); break; }", "drop a jump", "while (a) { b(); ; }"),
        ("if (a) return;", "drop a jump", "if (a) ;"),
        ("p.generation++;", "drop a counter step", ";"),
        ("p.generation++;", "count the other way", "p.generation--;"),
        ("seen = false;", "drop a reset", ";"),
        ("e.asked = {};", "drop a reset", ";"),
        ("p->old = nullptr;", "keep an old pointer", ";"),
        ("free_entry(d, e);", "lose what should be freed", ";"),
        ("delete a;", "lose what should be freed", ";"),
        ("bump(p, t);", "drop a statement", ";"),
        ("g(p.role[OWNER]);", "swap roles", "g(p.role[BORROWER]);"),
        ("x = std::max(a, b);", "swap min and max", "x = std::min(a, b);"),
        ("x = d.real(asked);", "skip a rounding", "x = (asked);"),
        ("x = aligned_offset(NULL, size, a);", "skip a rounding", "x = (size);"),
        ("x = (s + a - 1) & ~(a - 1);", "skip a rounding", "x = (s + a - 1) ;"),
        ("x = (s + d.page - 1) / d.page * d.page;", "skip a rounding", "x = (s + d.page - 1) ;"),
    ],
)
def test_a_slip(text: str, operator: str, after: str) -> None:
    assert (operator, after) in made(text)


@pytest.mark.parametrize(
    "text",
    [
        "// if (a < b) x++;",
        "/* if (a < b)\n x++; */",
        'f("a < b && c + 1");',
        "char x = 'a';",
        "#define N 16\n#if N > 3\n#endif",
        "#define F(a) \\\n    (a + 1)",
        "   #  include <a>",
        'GGML_LOG_ERROR("%d\\n", a + 1);',
        "assert(a < b);",
        "if (GC_PLANTED(OLD_STAYS)) x = 1;",
        "if (GC_PLANTED(OLD_STAYS) && a < 1) { x = 1; y = 2; }",
        "int a;",
        "const block & b = c;",
        "std::vector<block> blocks;",
        "struct tensor * t = u;",
    ],
)
def test_nothing_to_change(text: str) -> None:
    lines = "".join(text.splitlines()).strip()
    allowed = {"f();", ";"} | {lines} if text.startswith("f(") else set()
    assert becomes(text) <= allowed


def test_what_a_defect_shares_a_line_with_is_changed() -> None:
    """A condition beside a planted defect is code of the shipped library."""
    found = becomes("if (a != 1 && !GC_PLANTED(X)) return false;")
    assert "if (a == 1 && !GC_PLANTED(X)) return false;" in found


def test_lines_keep_their_numbers() -> None:
    text = "void f() {\n  if (a &&\n      b) {\n    g(c,\n      d);\n  }\n  return;\n}\n"
    for m in mutations(text, cpp=True):
        assert m.of(text).count("\n") == text.count("\n"), m


def test_no_change_is_made_twice() -> None:
    text = "bool f() { if (a < b || c) { x = max(1, y) - 1; return true; } return x == 3; }"
    after = [m.of(text) for m in mutations(text, cpp=True)]
    assert len(after) == len(set(after)) and text not in after


def test_tokens_cover_the_code() -> None:
    text = 'a->b <<= 0x1Fu + 1e-3; // c\n"\\"" R"x(")x" \'\\\'\' /* " */ ::d'
    assert [t.text for t in tokens(text)] == [
        "a", "->", "b", "<<=", "0x1Fu", "+", "1e-3", ";", '"\\""', 'R"x(")x"', "'\\''", "::", "d",
    ]  # fmt: skip
