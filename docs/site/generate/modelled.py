"""The model's functions that a clause is about: those that run when it acts, of its machine's own files."""

from __future__ import annotations

from collections.abc import Sequence

from gallocheck.fuzz.shortest import shortest_exercise
from gallocheck.model.terms import Terms, fresh
from gallocheck.spec.machine import Machine
from gallocheck.spec.machines import MACHINES

from .code import Function
from .ran import Running, last_step, whole
from .rules import machines_of


def model_code(clause: str) -> tuple[list[Function], str]:
    """The functions, and in words when they run. Never none."""
    machines = machines_of(clause)
    trace = shortest_exercise(clause)
    if not machines:
        proved = {f.file for m in MACHINES for f in any_step(m)}
        functions = last_step(trace) or whole(trace)
        mine = [f for f in functions if f.file not in proved]
        return (
            mine or functions,
            "in the last operation of the sequence below, beside the machines that are proved",
        )
    own = {f.file for f in any_step(machines[0])}
    for functions, when in (
        (
            last_step(trace),
            "in the last operation of the first sequence below, of the files that the proof is about",
        ),
        (whole(trace), "in the first sequence below, of the files that the proof is about"),
        (any_step(machines[0]), "in any step of the machine that is proved"),
    ):
        mine = [f for f in functions if f.file in own]
        if mine:
            return mine, when
    raise ValueError(f"nothing of {', '.join(sorted(own))} runs for {clause}")


_known: dict[str, list[Function]] = {}  #: by machine


def any_step(m: Machine) -> list[Function]:
    """What runs of the model in a step of the machine over terms, which takes every way."""
    if m.name not in _known:
        model = m.model(Terms(), *m.configs[0])
        running = Running()
        with running:
            model.step(fresh(m.init(model), "s"), fresh(m.operation(model), "op"))
        _known[m.name] = running.functions()
    return _known[m.name]


def by_file(functions: Sequence[Function]) -> list[tuple[str, list[Function]]]:
    files = dict.fromkeys(f.file for f in functions)
    return [(file, sorted((f for f in functions if f.file == file), key=lambda f: f.first)) for file in files]
