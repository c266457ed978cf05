"""A page a clause: statement, why, the rule's code, the property as a formula, proof, model, witnesses, defects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gallocheck.cli.explain import proof as in_words
from gallocheck.cli.explain import sizes
from gallocheck.fuzz.shortest import shortest_exercise
from gallocheck.fuzz.witness import Witness, for_clause
from gallocheck.fuzz.words import describe_op, describe_trace
from gallocheck.spec.clauses import CLAUSES, LAYERS, Clause
from gallocheck.spec.machine import Machine
from gallocheck.spec.why import why

from . import where
from .code import function_at, functions_saying, name_of, shown, statement
from .markdown import details, fence, page, plain, plural, raw, table
from .modelled import by_file, model_code
from .pictures import Planted, of_model
from .proofs import Rows, assumed, base, slug
from .rules import AFTER, Claims, Part, all_parts, machines_of


@dataclass(frozen=True)
class Material:
    """What all pages draw on."""

    rows: Rows
    planted: Sequence[Planted] = field(default=())

    def of(self, clause: str) -> list[Planted]:
        return [p for p in self.planted if p.defect.clause == clause]


def index() -> str:
    """The contract, a row a clause."""
    parts = ["# The contract, clause by clause",
             f"{len(CLAUSES)} clauses. Each page is made from the code that it names: nothing on it is written by hand.",
             "*Proved*: by induction over every state, operation and size. *Checked*: every run of a subject is judged by"
             " it. What is proved is checked as well."]  # fmt: skip
    for letter, layer in LAYERS.items():
        mine = [c for c in CLAUSES if c.letter == letter]
        rows = [
            [f"[{c.id}]({c.id}.md)", plain(c.title), "proved" if machines_of(c.id) else "checked"]
            for c in mine
        ]
        parts += [f"## {letter}: {layer}", table(["", "clause", ""], rows)]
    listing = "\n".join(c.id for c in CLAUSES)
    parts.append(f"```{{toctree}}\n:hidden:\n:titlesonly:\n\n{listing}\n```")
    return page(*parts)


def clause_page(c: Clause, material: Material) -> str:
    return page(
        f"({c.id})=\n# {c.id}: {plain(c.title)}",
        f"*Layer: {c.layer}.*",
        f"> {c.statement}",
        f"**Why.** {plain(why(c.id))}",
        *(proved_sections(c, material.rows) if machines_of(c.id) else checked_sections(c)),
        *model_section(c),
        *witness_section(c),
        *defect_section(c, material.of(c.id)),
        *where_section(c),
    )


# -- what is claimed ---------------------------------------------------------------------------------------


def proved_sections(c: Clause, rows: Rows) -> Iterator[str]:
    yield "## The property"
    yield (f"Proved for every step: from any state, by any operation. A name with {AFTER} is after the step, one without"
           " is before; `op.` is the operation, `out.` what it answers; small numbers are places in a row, as the code"
           " counts them. Words stand for what is listed under them; they are the names in the code.")  # fmt: skip
    told: set[str] = set()
    blocks: list[tuple[Claims, list[Part]]] = []
    for found, parts in all_parts(c.id):
        new = [p for p in parts if alike(p.name) not in told]
        first = list({alike(p.name): p for p in reversed(new)}.values())[::-1]
        told |= {alike(p.name) for p in new}
        if first:
            blocks.append((found, first))
    for found, mine in blocks:
        for part in mine:
            yield f"**{plain(part.name)}**" + ("" if part.counts else " (of nearly every step)")
            yield fence(part.formula)
        words = found.words[c.id]
        if words:
            yield details("What the words stand for", fence("\n".join(words)))
    yield from rule_code([p for _, mine in blocks for p in mine])
    yield from proof_section(c, rows)


def alike(name: str) -> str:
    """Parts that differ in a number, or in whose they are, are the same claim twice."""
    return re.sub(r"\b(owner|borrower)\b|\d+", "#", name)


def rule_code(parts: Sequence[Part]) -> Iterator[str]:
    yield "## The rule's code"
    places: dict[tuple[str, int], set[int]] = {}
    for part in parts:
        code, line = part.place
        file = name_of(code.co_filename)
        f = function_at(file, line)
        if f is None:
            raise ValueError(f"{part.name} is made outside any function, in {file} at {line}")
        places.setdefault((file, f.first), set()).update(statement(file, line))
    for (file, first), lines in sorted(places.items()):
        f = function_at(file, first)
        if f is not None:
            yield f"`{f.name}` in `{f.where}`; what is about this clause is marked."
            yield shown(f, lines)


def proof_section(c: Clause, rows: Rows) -> Iterator[str]:
    yield "## The proof"
    machines = machines_of(c.id)
    if rows is None:
        yield "*This build of the docs did not run the prover.*"
    else:
        mine = rows[c.id]
        total = sum(r.seconds for r in mine)
        yield f"Proved in {total:.2f} s when these pages were made, on top of its machines' invariants:"
        yield table(["machine", "sizes", "verdict", "time", "its invariants"], map_rows(c, machines, rows))
    yield "\n".join(f"- {plain(line)}" for line in in_words(c))
    yield "What is given of the state before the step:"
    given = [(m, "; ".join(assumed(m).invariants)) for m in machines]
    yield "\n".join(f"- of [{plain(m.name)}](../machines/{slug(m)}.md): {plain(names)}" for m, names in given)


def map_rows(c: Clause, machines: Sequence[Machine], rows: Rows) -> Iterator[list[str]]:
    for m in machines:
        found = [r for r in (rows or {}).get(c.id, []) if r.machine == m.name]
        if not found:
            raise ValueError(f"the prover has no row of {c.id} for {m.name}")
        took = sum(r.seconds for r in found)
        under = sum(r.seconds for r in base(m, rows))
        yield [
            plain(m.name),
            plain(sizes(m).split(", of ", 1)[1]),
            found[0].verdict,
            f"{took:.2f} s",
            f"{under:.2f} s",
        ]


def checked_sections(c: Clause) -> Iterator[str]:
    yield "## What checks it"
    yield "\n".join(f"- {plain(line)}" for line in in_words(c))
    yield "The code that blames this clause, or counts how often it was exercised:"
    found = [f for file in where.judging() for f in functions_saying(file, c.id)]
    if not found:
        raise ValueError(f"no function of spec/ or fuzz/ blames {c.id}")
    for f in found:
        yield details(f"{f.name}, {f.where}", shown(f))


# -- the model, and traces ---------------------------------------------------------------------------------


def model_section(c: Clause) -> Iterator[str]:
    functions, when = model_code(c.id)
    yield "## The model's code"
    yield f"What runs of the model {when}."
    for file, mine in by_file(functions):
        inside = [x for f in mine for x in (f"`{f.name}`, line {f.first}:", shown(f))]
        yield details(f"{file}: {plural(len(mine), 'function')}", *inside)


def witness_section(c: Clause) -> Iterator[str]:
    yield "## Sequences that make it act"
    trace = shortest_exercise(c.id)
    yield "The shortest that is known to exercise it on the bundled allocator:"
    yield fence(describe_trace(trace))
    yield picture(of_model(trace, f"exercise-{c.id}"))
    found = for_clause(c.id)
    if not found:
        return
    shown_parts: set[str] = set()
    yield "Found by Z3, for each part of it the shortest sequence after which that part acts:"
    for w in found:
        new = [p.name for p in w.parts if p.clause == c.id and p.name not in shown_parts]
        shown_parts.update(new)
        if new:
            yield details("; ".join(new), *witness(w))


def witness(w: Witness) -> Iterator[str]:
    """The walk, or the trace that goes as it does."""
    if w.trace is None:
        yield f"A walk of the machine {plain(w.machine)}; no operations of a subject bring it about:"
        yield fence("\n".join(f"{n}. {words}" for n, words in enumerate(w.walk)))
        return
    yield fence(f"{describe_trace(w.trace)}\n<- here: {describe_op(w.trace.ops[w.step], w.trace)}")


# -- what was planted --------------------------------------------------------------------------------------


def defect_section(c: Clause, planted: Sequence[Planted]) -> Iterator[str]:
    yield "## Planted defects"
    if not planted:
        raise ValueError(f"{c.id} has no planted defect")
    yield (f"{plural(len(planted), 'defect')} of our own allocator (or of the adapter) that must be blamed on this clause."
           " Each counterexample was run again when this page was made.")  # fmt: skip
    for p in planted:
        yield f"### Defect {p.defect.number}: {plain(p.defect.what)}"
        if not p.again:
            yield ("*Planted in the adapter: it needs a ggml tree, and was not run when this page was made. The picture"
                   " is of the model's own run.*")  # fmt: skip
        yield f"{p.clause} is broken at operation {p.step}: {plain(p.message)}"
        yield fence(f"{describe_trace(p.saved.trace)}\n<- here: {here(p)}")
        if p.expected or p.seen:
            yield fence(f"expected {p.expected}\nseen     {p.seen}")
        yield picture(p.picture)
        yield fence(p.command, "console")


def here(p: Planted) -> str:
    trace = p.saved.trace
    return describe_op(trace.ops[p.step], trace) if p.step < len(trace.ops) else "everything is freed"


def picture(svg: str) -> str:
    """As wide as there is room, but never so small that it cannot be read: then it scrolls."""
    wide = float(svg.split('viewBox="0 0 ')[1].split()[0])
    style = f"width:min(100%,{wide:.0f}px);min-width:min({wide:.0f}px,36rem);height:auto"
    fitted = svg.replace("<svg ", f'<svg style="{style}" ', 1)
    return raw(
        f"<div class='gc-scroll' tabindex='0' role='region' aria-label='memory over time'>{fitted}</div>"
    )


def where_section(c: Clause) -> Iterator[str]:
    yield "## Where it is checked"
    rows = [[f"`{file}`", plain(words)] for file, words in where.modules(c)]
    yield table(["module", "what it is"], rows)
    yield f"A subject is held to it when it declares: {where.capabilities(c)}."
    yield "Tests that name it: " + ", ".join(f"`{t}`" for t in where.tests(c)) + "."
    yield fence(f"gallocheck check {c.id} --time 10s\ngallocheck explain {c.id}", "console")
