"""The prover itself, on a machine of a few lines: it proves, refutes, finds the trace, and notices what says nothing."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from io import StringIO
from typing import Any, NamedTuple

import pytest
from gallocheck.model.domain import Tree, Value
from gallocheck.spec import prover
from gallocheck.spec.bounded import lines, reach, replay
from gallocheck.spec.induction import base, empty_parts
from gallocheck.spec.machine import INVARIANT, Machine
from gallocheck.spec.machines import MACHINES
from gallocheck.spec.prover import PROVED, REFUTED, UNKNOWN, all_proved, prove_machine
from gallocheck.spec.step import Rule
from gallocheck.spec.table import print_table
from gallocheck.spec.words import describe
from rich.console import Console


class Kind(IntEnum):
    PUT = 0
    TAKE = 1


class State(NamedTuple):
    held: Value
    most: Value


class Op(NamedTuple):
    kind: Value
    n: Value = 0


class Out(NamedTuple):
    ok: Value


class Jar:
    """Holds a number of things, never more than `most`."""

    def __init__(self, d: Any, room: int) -> None:
        self.d, self.room = d, room

    def step(self, s: State, op: Op) -> tuple[State, Out]:
        fits = self.fits(s, op)
        put = self.d.ite(fits, s._replace(held=s.held + op.n), s)
        take = self.d.ite(op.n <= s.held, s._replace(held=s.held - op.n), s)
        arms = {Kind.PUT: lambda: (put, Out(fits)), Kind.TAKE: lambda: (take, Out(op.n <= s.held))}
        out: tuple[State, Out] = self.d.switch(op.kind, arms, lambda: (s, Out(False)))
        return out

    def fits(self, s: State, op: Op) -> Value:
        return s.held + op.n <= s.most


class Leaky(Jar):
    """Takes one more than there is room for, where it is nearly full."""

    def fits(self, s: State, op: Op) -> Value:
        return s.held + op.n <= s.most + 1


def rules(model: Jar, s: State, op: Op, t: State, out: Out) -> dict[str, dict[str, Rule]]:
    d = model.d
    putting = d.all(op.kind == int(Kind.PUT), out.ok)
    return {
        "R1": {"never too much": Rule(putting, t.held <= t.most)},
        "R2": {"all of it": Rule(putting, t.held == s.held + op.n)},
    }


def law(model: Jar, s: State, op: Op) -> list[Value]:
    return [op.n >= 0]


def whole(model: Jar, s: State) -> dict[str, Value]:
    return {"within bounds": model.d.all(s.held >= 0, s.held <= s.most, s.most == model.room)}


JAR = Machine(
    name="jar",
    model=Jar,
    configs=((3,), (5,)),
    kinds=tuple(Kind),
    clauses=("R1", "R2"),
    init=lambda model: State(0, model.room),
    operation=lambda model: Op(0),
    rules=rules,
    invariants=whole,
    lawful=law,
    sizes="room",
)


def test_what_holds_is_proved() -> None:
    rows = prove_machine(JAR)
    assert [(r.clause, r.config, r.verdict) for r in rows] == [
        (c, k, PROVED) for k in JAR.configs for c in (INVARIANT, "R1", "R2")
    ]
    assert empty_parts(JAR, (3,)) == []


def test_what_does_not_is_refuted_with_a_trace_that_runs() -> None:
    rows = {r.clause: r for r in prove_machine(JAR, configs=[(3,)], model=Leaky)}
    assert rows["R1"].verdict == REFUTED and rows["R1"].part == "never too much"
    assert rows[INVARIANT].verdict == REFUTED and rows["R2"].verdict == UNKNOWN
    trace = rows["R1"].trace
    assert trace is not None and [m.broken for m in replay(JAR, Leaky, trace)] == [[("R1", "never too much")]]
    assert [m.broken for m in replay(JAR, Jar, trace)] == [[]]
    assert rows["R1"].reached == "reached from the start in 1 operations"
    assert lines(JAR, Leaky, trace) == [
        "start: most 3",
        "1. put (n 4): ok",
        "   held 4, most 3",
        "   breaks R1: never too much",
    ]


def test_a_state_that_is_never_reached_is_said_to_be() -> None:
    """Induction alone cannot know: with too weak an invariant a step from nowhere breaks the clause."""
    weak = replace(JAR, invariants=lambda model, s: {}, lawful=lambda model, s, op: [op.n == 1])
    jar = replace(
        weak, rules=lambda m, s, op, t, out: {"R1": {"": Rule(True, t.held <= t.most)}}, clauses=("R1",)
    )
    row = prove_machine(jar, configs=[(3,)])[1]
    assert row.verdict == REFUTED and row.trace is None
    assert row.reached == "not reached from the start within 6 operations"
    assert row.step[0].startswith("in: ") and len(row.step) == 3


def test_a_start_outside_of_the_invariants_is_found() -> None:
    full = replace(JAR, init=lambda model: State(model.room + 1, model.room))
    assert base(JAR, Jar, (3,))[0] and not base(full, Jar, (3,))[0]
    rows = prove_machine(full, configs=[(3,)], search=False)
    assert rows[0].verdict == REFUTED and rows[0].part == "the start state"
    assert {r.verdict for r in rows[1:]} == {UNKNOWN}


def test_rules_and_kinds_that_say_nothing_are_found() -> None:
    def silent(model: Jar, s: State, op: Op, t: State, out: Out) -> dict[str, dict[str, Rule]]:
        return {"R1": {"never": Rule(model.d.all(out.ok, t.held > t.most), False)}}

    assert empty_parts(replace(JAR, rules=silent), (3,)) == [("R1", "never")]
    never = replace(JAR, lawful=lambda model, s, op: [op.kind == int(Kind.PUT)])
    assert ("TAKE", "") in empty_parts(never, (3,))


def test_searches_stop_in_time() -> None:
    found = reach(JAR, Jar, (3,), "R1", depth=2)
    assert found.trace is None and found.sure and found.depth == 2
    assert reach(JAR, Jar, (3,), "R1", budget=0).depth == 0


@pytest.mark.parametrize("processes", [1, 2])
def test_processes_make_no_difference(processes: int) -> None:
    rows = prover.prove(["W2", "T1"], processes=processes)
    assert {r.verdict for r in rows} == {PROVED}
    small = [(m, k) for m in MACHINES for k in m.configs if {"W2", "T1"} & set(m.clauses)]
    assert [(r.machine, r.config) for r in rows if r.clause == INVARIANT] == [(m.name, k) for m, k in small]


def test_every_machine_is_named_once_and_the_table_has_each() -> None:
    assert len({m.name for m in MACHINES}) == len(MACHINES)
    assert set(all_proved()) == {c for m in MACHINES for c in m.clauses}
    text = StringIO()
    print_table(prove_machine(JAR), Console(file=text, width=160))
    assert "jar" in text.getvalue() and "3 5" in text.getvalue()


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.name)
def test_the_configs_of_a_machine_make_a_model_whose_start_is_right(machine: Machine) -> None:
    for config in machine.configs:
        assert base(machine, machine.model, config)[0]


def test_words_leave_out_what_is_nothing() -> None:
    tree: Tree = State((1, (2, 3)), 0)
    assert describe(tree) == "held (1 (2 3))" and describe(Out(True)) == "ok" and describe(7) == "7"
    assert describe((State(False, 2),)) == "((most 2))"
