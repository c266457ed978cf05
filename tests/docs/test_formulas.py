"""Formulas: what Z3 terms look like to people, by hand-made examples, and what they mean stays the same."""

from __future__ import annotations

import z3
from gallocheck.model.records import Kind
from generate import formulas, rules
from generate.terms import FALSE, TRUE, Node, Reader, inverse
from hypothesis import given, settings
from hypothesis import strategies as st

AND, OR, NOT = "\N{LOGICAL AND}", "\N{LOGICAL OR}", "\N{NOT SIGN}"
a, b, c = z3.Bools("s.a s.b s.c")
x, y = z3.Ints("s.x s.y")


def read(term: object, **words: object) -> str:
    named = {t.get_id(): (t, name) for name, t in words.items()}  # type: ignore[attr-defined]
    return formulas.line(Reader(lambda n: n.removeprefix("s."), rules.constant, named).node(term))


def test_connectives_are_flat_and_negation_is_inside() -> None:
    assert read(z3.And(a, z3.And(b, c))) == f"a {AND} b {AND} c"
    assert read(z3.Not(z3.And(a, x < y))) == f"{NOT}a {OR} x ≥ y"
    assert read(z3.Or(z3.And(a, b), c)) == f"a {AND} b {OR} c"
    assert read(z3.And(z3.Or(a, b), c)) == f"(a {OR} b) {AND} c"


def test_choices() -> None:
    assert read(z3.If(x > y, x, y)) == "max(x, y)"
    assert read(z3.If(a, x, y) + 1) == "(if a then x else y) + 1"
    assert read(z3.If(a, b, False)) == f"a {AND} b"
    assert read(z3.If(a, z3.BoolVal(True), b)) == f"a {OR} b"


def test_numbers_get_their_names() -> None:
    kind, status = z3.Int("op.kind"), z3.Int("out.status")
    assert read(kind == int(Kind.RESERVE)) == "op.kind = RESERVE"
    assert read(z3.Not(status == 1)) == "out.status ≠ DONE"


def test_words_stand_for_terms() -> None:
    both = z3.And(a, x < y)
    assert read(z3.And(both, c), had_room=both) == f"had_room {AND} c"
    assert read(z3.Not(both), had_room=both) == f"{NOT}had_room"


def test_long_claims_have_a_line_for_each_part() -> None:
    many = z3.And(*(z3.Bool(f"s.a_rather_long_name_{n}") for n in range(6)))
    reader = Reader(lambda n: n.removeprefix("s."), rules.constant)
    lines = formulas.claim(reader.node(many), reader.node(b)).splitlines()
    assert len(lines) == 8 and lines[0].strip() == f"{AND} a_rather_long_name_0" and lines[-2] == "⇒"
    assert formulas.claim(TRUE, reader.node(b)) == "b"
    assert formulas.cut(["x"] * 9, 4)[-1] == "… and 5 lines more"


def holds(node: Node, values: dict[str, bool]) -> bool:
    sign, parts = node
    if node in (TRUE, FALSE):
        return node == TRUE
    if sign == "name":
        return values[parts]
    if sign == "not":
        return not holds(parts, values)
    if sign == "if":
        return holds(parts[1] if holds(parts[0], values) else parts[2], values)
    found = [holds(p, values) for p in parts]
    return {"and": all, "or": any, "=": lambda f: f[0] == f[1], "≠": lambda f: f[0] != f[1]}[sign](found)


TERMS = st.recursive(
    st.sampled_from([a, b, c, z3.BoolVal(True)]),
    lambda t: st.one_of(
        st.builds(lambda p, q: z3.And(p, q), t, t),
        st.builds(lambda p, q: z3.Or(p, q), t, t),
        st.builds(z3.Not, t),
        st.builds(lambda p, q, r: z3.If(p, q, r), t, t, t),
        st.builds(lambda p, q: p == q, t, t),
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=150)
@given(TERMS, st.booleans(), st.booleans(), st.booleans())
def test_a_formula_means_what_its_term_means(term: z3.BoolRef, p: bool, q: bool, r: bool) -> None:
    values = {"s.a": p, "s.b": q, "s.c": r}
    pairs = [(v, z3.BoolVal(values[str(v)])) for v in (a, b, c)]
    true = z3.is_true(z3.simplify(z3.substitute(term, *pairs)))
    node = Reader(lambda n: n, rules.constant).node(term)
    assert holds(node, values) == true and holds(inverse(node), values) != true


def test_the_parts_of_a_clause_and_where_they_are_written() -> None:
    found = rules.claims("the server")
    assert found.parts["T1"] and all(p.place[0].co_filename.endswith("server.py") for p in found.parts["T1"])
