"""Witnesses: the shortest walks of a machine whose last operation takes a branch of the model, or makes a rule act.

    for found in Search(scene, goals).run():
        ...

A goal is a way through a branch (branches.Way) or a part of a clause (Part). Terms that note, at every branch,
under which condition the model comes there (`Noting`) turn goals into formulas; all goals of one depth share a
solver, and a walk that was found strikes every goal that it reaches, as the model over ints says.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import z3

from ..model.domain import Ints, Tree, Value
from ..model.terms import fresh, leaves
from .bounded import Trace, Walk
from .branches import Covered, Way
from .induction import term
from .machine import Config, Fields, Machine
from .noting import Noting

QUERY_S = 15.0  #: seconds for one question to the solver
TRIES, MOST_TRIES = 3, 9  #: walks to a goal of which nothing is made: of one depth, and in all
LONG = 12  #: operations of a walk that are made plain


class Part(NamedTuple):
    """A part of a clause acts: its `when` holds."""

    clause: str
    name: str


Goal = Way | Part
Prefix = tuple[tuple[int, Fields], ...]


Earlier = list[tuple[Any, Any]]


def _free(model: Any, s: Tree, op: Any, earlier: Earlier) -> list[Value]:
    return []


def _any_walk(trace: Trace) -> object:
    return trace


def _all_of_it(made: Any, goal: Goal) -> bool:
    return True


@dataclass(frozen=True)
class Scene:
    """Where to search: a machine at one of its configs, and how.

    `real(model, s, op, earlier)`: what is given of operations that a subject's can bring about; `earlier`: the
    operations before, each with what it gave.
    `accept(trace)`: what becomes of a walk; None where it cannot be brought about. `covers(made, goal)`: what
    became of it reaches the goal. `depth`: operations.
    """

    machine: Machine
    config: Config
    depth: int
    prefixes: tuple[Prefix, ...] = ((),)
    real: Callable[[Any, Tree, Any, Earlier], list[Value]] = _free
    accept: Callable[[Trace], Any] = _any_walk
    covers: Callable[[Any, Goal], bool] = _all_of_it


@dataclass(frozen=True)
class Found:
    """A walk, goals that its last operation reaches, and what `accept` made of it (None: nothing).

    `covered`: what was made of it reaches them too.
    """

    trace: Trace
    goals: frozenset[Goal]
    made: Any
    covered: bool = True


# -- walks with goals ------------------------------------------------------------------------------------


class Hike(Walk):
    """A walk that knows the goals that its last operation can reach: `goals_here`, with their conditions."""

    d: Noting

    def __init__(self, scene: Scene, prefix: Prefix) -> None:
        self.scene, self.outs = scene, list[Any]()
        super().__init__(scene.machine, scene.machine.model, scene.config, prefix, Noting)
        self.solver.set("timeout", int(QUERY_S * 1000))

    def take(self, op: Any) -> Any:
        self.d.noted = {}
        after = super().take(op)
        self.ways, self.d.noted = self.d.noted, {}
        self.outs.append(after[1])
        return after

    def law(self, op: Any) -> list[Value]:
        earlier = list(zip(self.ops, self.outs, strict=False))  # not yet this one
        return [*super().law(op), *self.scene.real(self.model, self.s, op, earlier)]

    def goals_here(self) -> dict[Goal, Value]:
        found: dict[Goal, Value] = {way: self.d.any(*conditions) for way, conditions in self.ways.items()}
        for clause, parts in self.rules.items():
            found |= {Part(clause, name): rule.when for name, rule in parts.items()}
        return {goal: c for goal, c in found.items() if c is not False}

    def reach(self, conditions: Iterable[Value]) -> tuple[Trace | None, bool]:
        """A plain walk whose last step meets one of the conditions, and whether the answer is sure."""
        self.solver.push()
        self.solver.add(z3.Or(*map(term, conditions)))
        answer = str(self.solver.check())
        trace = self._small() if answer == "sat" else None
        self.solver.pop()
        return trace, answer != "unknown"

    def avoid(self, trace: Trace) -> None:
        """No walk of this walk's kinds of operation, roles and flags again."""
        differ = []
        for mine, theirs in zip(leaves(tuple(self.ops)), leaves(trace.ops), strict=True):
            discrete = z3.is_expr(mine) and (z3.is_bool(mine) or str(mine).endswith((".kind", ".role")))
            if discrete:
                differ.append(mine != theirs)
        self.solver.add(z3.Or(*differ))


# -- what a walk reaches over ints ------------------------------------------------------------------------


def reached(m: Machine, trace: Trace) -> frozenset[Goal]:
    """The goals that the last operation of the walk reaches, by the model over ints."""
    model = m.model(Ints, *trace.config)
    s = trace.start
    for op in trace.ops[:-1]:
        s, _ = model.step(s, op)
    with Covered() as covered:
        t, out = model.step(s, trace.ops[-1])
        ways = covered.ways()
    rules = m.rules(model, s, trace.ops[-1], t, out)
    acting = {Part(c, name) for c, parts in rules.items() for name, rule in parts.items() if rule.when}
    return frozenset(ways | acting)


def allowed(scene: Scene, trace: Trace) -> bool:
    """Every operation is lawful, and one that a subject's can bring about."""
    m, earlier = scene.machine, list[tuple[Any, Any]]()
    model, s = m.model(Ints, *trace.config), trace.start
    for op in trace.ops:
        if not all((*m.lawful(model, s, op), *scene.real(model, s, op, earlier))):
            return False
        s, out = model.step(s, op)
        earlier.append((op, out))
    return True


def plain(scene: Scene, trace: Trace, goals: frozenset[Goal]) -> Trace:
    """The walk with as many fields of its operations as can be as they usually are; it still reaches the goals.
    Of a long one the last operations alone."""
    usual = scene.machine.operation(scene.machine.model(Ints, *scene.config))
    for n, op in list(enumerate(trace.ops))[-LONG:]:
        for name in op._fields[1:]:  # the kind is what it is
            for simpler in _simpler(getattr(trace.ops[n], name), getattr(usual, name)):
                ops = (*trace.ops[:n], trace.ops[n]._replace(**{name: simpler}), *trace.ops[n + 1 :])
                other = replace(trace, ops=ops)
                if allowed(scene, other) and goals <= reached(scene.machine, other):
                    trace = other
                    break
    return trace


def _simpler(now: Any, usual: Any) -> Iterator[Any]:
    """What a field may be in place of what it is: as it usually is, all of it or a part."""
    if now != usual:
        yield usual
        for name in getattr(now, "_fields", ()):
            for part in _simpler(getattr(now, name), getattr(usual, name)):
                yield now._replace(**{name: part})


# -- the search -------------------------------------------------------------------------------------------


@dataclass
class Search:
    """Walks to the goals that `wants` says, by depth. After `run`: `seen` are all goals that any step could name,
    `left` those not reached, `sure` is false where the solver gave up on something."""

    scene: Scene
    wants: Callable[[Goal], bool]
    deadline: float = float("inf")  #: of time.perf_counter
    seen: set[Goal] = field(default_factory=set)
    done: set[Goal] = field(default_factory=set)
    others: dict[Goal, Found] = field(
        default_factory=dict
    )  # the first walk of those that nothing was made of
    made: list[Found] = field(default_factory=list)
    tried: Counter[Goal] = field(default_factory=Counter)
    sure: bool = True
    depth: int = 0

    @property
    def left(self) -> set[Goal]:
        return self.seen - self.done

    @property
    def late(self) -> bool:
        return time.perf_counter() > self.deadline

    def run(self) -> Iterator[Found]:
        """The walks; at the end those of which nothing that reaches the goal was made."""
        hikes: list[Hike] = []
        waiting = sorted(self.scene.prefixes, key=len)
        longest = len(waiting[-1])
        for depth in range(1, self.scene.depth + 1):
            for hike in hikes:
                hike.extend()
            while waiting and len(waiting[0]) <= depth:
                hike = Hike(self.scene, waiting.pop(0))
                if not hike.ops:
                    hike.extend()
                hikes.append(hike)
            for hike in hikes:
                yield from self._here(hike)
            self.depth = depth
            if self.late or (depth > longest + 2 and not self.left):
                break
        yield from self._others()

    def _others(self) -> Iterator[Found]:
        """For goals that nothing made covers: the first walks, a walk for as many of them as it reaches."""
        grouped: dict[Trace, set[Goal]] = {}
        walks = {f.trace: f for f in (*self.made, *self.others.values()) if f.made is not None}
        ways = {trace: reached(self.scene.machine, trace) for trace in walks}
        for goal in sorted(self.left & set(self.others), key=str):
            first = self.others[goal]
            alike = (t for t in ways if goal in ways[t] and len(t.ops) <= len(first.trace.ops))
            trace = next(alike, first.trace)
            walks.setdefault(trace, first)
            grouped.setdefault(trace, set()).add(goal)
        for trace, goals in grouped.items():
            self.done |= goals
            yield Found(trace, frozenset(goals), walks[trace].made, False)

    def _here(self, hike: Hike) -> Iterator[Found]:
        """All that the last step of this walk can reach."""
        goals = {g: c for g, c in hike.goals_here().items() if self.wants(g)}
        self.seen |= set(goals)
        limit = {g: min(self.tried[g] + TRIES, MOST_TRIES) for g in goals}
        hike.solver.push()  # what is avoided here is not in longer walks
        yield from self._each(hike, goals, limit)
        hike.solver.pop()

    def _each(self, hike: Hike, goals: dict[Goal, Value], limit: dict[Goal, int]) -> Iterator[Found]:
        while open_ := {g: c for g, c in goals.items() if g not in self.done and self.tried[g] < limit[g]}:
            if self.late:
                self.sure = False
                return
            trace, sure = hike.reach(open_.values())
            if trace is None and not sure and len(open_) > 1:  # all of them at once is too hard
                for goal, c in open_.items():
                    trace, sure = hike.reach([c])
                    self.sure = self.sure and sure
                    if trace is not None:
                        yield from self._made(hike, trace, {goal})
                return
            self.sure = self.sure and sure
            if trace is None:
                return
            yield from self._made(hike, trace, set(open_))

    def _made(self, hike: Hike, trace: Trace, open_: set[Goal]) -> Iterator[Found]:
        """What becomes of a walk that reaches some of the open goals."""
        found = {g for g in reached(self.scene.machine, trace) if self.wants(g)}
        if not found & open_:
            raise AssertionError(f"{self.scene.machine.name}: terms and ints part at {trace}")
        for walk in (plain(self.scene, trace, frozenset(found & open_)), trace):
            found = {g for g in reached(self.scene.machine, walk) if self.wants(g)}
            made = self.scene.accept(walk)
            covered = {g for g in found if made is not None and self.scene.covers(made, g)} - self.done
            if covered & open_:
                break
        trace = walk
        self.done |= covered
        if covered:
            self.made.append(Found(trace, frozenset(covered), made))
            yield self.made[-1]
        for goal in (found & open_) - self.done:
            self.tried[goal] += 1
            before = self.others.get(goal)
            if before is None or (before.made is None and made is not None):
                self.others[goal] = Found(trace, frozenset({goal}), made, False)
        if not covered & open_:
            hike.avoid(trace)


# -- goals that nothing reaches -----------------------------------------------------------------------------


class AnyStep:
    """Any lawful operation of a machine's kinds, from any state that has its invariants."""

    def __init__(self, m: Machine, config: Config) -> None:
        d = Noting()
        model = m.model(d, *config)
        s = m.tidy(fresh(m.init(model), "s"))
        op = fresh(m.operation(model), "op")
        t, out = model.step(s, op)
        self.goals: dict[Goal, Value] = {way: d.any(*c) for way, c in d.noted.items()}
        for clause, parts in m.rules(model, s, op, t, out).items():
            self.goals |= {Part(clause, name): rule.when for name, rule in parts.items()}
        self.solver = z3.Solver()
        self.solver.set("timeout", int(QUERY_S * 1000))
        given = [*m.invariants(model, s).values(), *m.lawful(model, s, op), *d.axioms()]
        self.solver.add(*given, z3.Or(*(op.kind == int(k) for k in m.kinds)))

    def reaches(self, goal: Goal) -> bool:
        """False where it is proved that no such step reaches the goal."""
        c = self.goals.get(goal, False)
        return c is not False and (c is True or str(self.solver.check(c)) != "unsat")
