"""A page a machine that is proved: its state, its operations, its invariants, what is lawful."""

from __future__ import annotations

from gallocheck.cli.explain import sizes
from gallocheck.model.domain import Ints
from gallocheck.spec.machine import Machine
from gallocheck.spec.machines import MACHINES

from .code import class_named, shown
from .markdown import fence, page, plain, plural, table
from .proofs import Rows, assumed, base, slug


def index(rows: Rows) -> str:
    head = ["machine", "sizes", "operations", "clauses"]
    lines = [
        [
            f"[{plain(m.name)}]({slug(m)}.md)",
            plain(sizes(m).split(", of ", 1)[1]),
            str(len(m.kinds)),
            links(m),
        ]
        for m in MACHINES
    ]
    listing = "\n".join(map(slug, MACHINES))
    return page(
        "# The machines that are proved",
        "A machine is a pure step function over a state. The proof: every start state has the invariants; from any"
        " state that has them any lawful operation leads to one that has them, and keeps every rule.",
        table(head, lines),
        f"```{{toctree}}\n:hidden:\n:titlesonly:\n\n{listing}\n```",
    )


def links(m: Machine) -> str:
    return " ".join(f"[{c}](../clauses/{c}.md)" for c in m.clauses)


def machine_page(m: Machine, rows: Rows) -> str:
    a, found = assumed(m), base(m, rows)
    took = "*This build of the docs did not run the prover.*"
    if found:
        took = f"They were proved in {sum(r.seconds for r in found):.2f} s when this page was made."
    model = m.model(Ints, *m.configs[0])
    state = type(m.init(model))
    return page(
        f"# Machine: {plain(m.name)}",
        f"Proved for {plain(sizes(m))}. Clauses: {links(m)}.",
        "## Its state",
        *state_code(state),
        "## Its operations",
        fence("\n".join(k.name for k in m.kinds)),
        f"## Its invariants\n\n{plural(len(a.invariants), 'invariant')}. {took}",
        "\n".join(f"- {plain(name)}" for name in a.invariants),
        *(x for f in a.said for x in (f"`{f.name}` in `{f.where}`:", shown(f))),
        "## What is lawful\n\nOf an operation the proof assumes no more than this:",
        *(x for f in a.lawful for x in (f"`{f.name}` in `{f.where}`:", shown(f))),
    )


def state_code(state: type) -> list[str]:
    """The state's class; of one that is made of others, theirs too."""
    file = state.__module__.split(".", 1)[1].replace(".", "/") + ".py"
    f = class_named(file, state.__name__)
    return [f"`{f.name}` in `{f.where}`:", shown(f)]
