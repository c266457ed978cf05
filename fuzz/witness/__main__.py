"""Finds all witnesses anew: python -m gallocheck.fuzz.witness [SEARCH...]

Without names: every search, and the proofs that nothing reaches what is left. A few minutes. With names: those
searches alone; `left` is the proofs.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from ...model.domain import Ints
from ...model.pair import RoleOp
from ...model.records import Kind, Shared
from ...spec import branches, pair_words
from ...spec.branches import Way
from ...spec.witness import AnyStep, Found, Goal, Part, Search
from ...spec.words import describe
from ..judge import Judge
from ..subjects import bundled
from .kept import Unreached, Witness, numbers, read, save, save_unreached, witnesses
from .scenes import Stage, stages

LONGEST_S = 240.0  #: seconds of one search
LEFT = "left"  #: as a name: the proofs alone


def tell(stage: Stage, op: Any) -> str:
    """One operation of a walk: what of it is not as usual."""
    m = stage.scene.machine
    if isinstance(op, RoleOp):
        lacks = [bit.name.lower() for bit, x in zip(Shared, op.missing, strict=True) if x and bit.name]
        return pair_words.operation(op) + (f" (not {', '.join(lacks)})" if lacks else "")
    if m.words is not describe:
        return m.tell(op)
    usual = m.operation(m.model(Ints, *stage.scene.config))
    unusual = [
        (name, x) for name, x, y in zip(op._fields, op, usual, strict=True) if name != "kind" and x != y
    ]
    words = [field_in_words(name.replace("_", " "), x) for name, x in unusual]
    return Kind(op.kind).name.lower() + (f" ({', '.join(words)})" if words else "")


def field_in_words(name: str, x: Any) -> str:
    if isinstance(x, bool):
        return name if x else f"not {name}"
    return f"{name} {' '.join(str(int(y)) for y in x) if isinstance(x, tuple) else x}"


def witness(stage: Stage, found: Found, judge: Judge) -> Witness:
    m, made = stage.scene.machine, found.made
    walk = tuple(tell(stage, op) for op in found.trace.ops)
    parts = tuple(g for g in found.goals if not isinstance(g, Way))
    ways = tuple(g for g in found.goals if isinstance(g, Way))
    if made is None:
        return Witness(
            stage.name, m.name, walk, parts, ways, False, None, len(walk) - 1, (), numbers(found.trace)
        )
    tally = judge.judge(made.trace).tally
    counted = tuple(sorted(clause for clause, n in tally.items() if n))
    return Witness(
        stage.name,
        m.name,
        walk,
        parts,
        ways,
        found.covered,
        made.trace,
        made.step,
        counted,
        numbers(found.trace),
    )


def search(stage: Stage, done: set[Goal], judge: Judge) -> None:
    """Searches for what nobody found before, and keeps it."""
    began, found = time.perf_counter(), list[Witness]()
    job = Search(stage.scene, lambda g: stage.wants(g) and g not in done, began + LONGEST_S)
    for one in job.run():
        found.append(witness(stage, one, judge))
        if sys.stderr.isatty():
            print(f"\r{stage.name}: {len(job.done)} of {len(job.seen)}", end="", file=sys.stderr)
    save(stage.name, sorted(found, key=lambda w: (len(w.walk), w.walk)))
    none = sum(w.trace is None for w in found)
    print(f"\r{stage.name}: {len(job.done)} of {len(job.seen)} goals in {len(found)} walks of up to {job.depth} "
          f"operations, {none} of them no traces, {time.perf_counter() - began:.0f} s"
          + ("" if job.sure else "; the solver gave up on something"), flush=True)  # fmt: skip


def left(all_: list[Stage]) -> list[Unreached]:
    """What has no witness, each with a proof that nothing reaches it, where there is one."""
    steps = {s.name: AnyStep(s.scene.machine, s.scene.config) for s in all_}
    seen = {goal for w in witnesses() for goal in (*w.ways, *w.parts)}
    by_machine: dict[str, set[Goal]] = {}
    for w in witnesses():
        by_machine.setdefault(w.machine, set()).update(w.parts)
    found = []
    for site, arms in sorted(branches.sites().items()):
        for way in ways(site, arms, {goal for goal in seen if isinstance(goal, Way)}):
            found.append(judged(way, [s for s in all_ if site.file in s.files], steps))
    for name, reached in by_machine.items():
        mine = [s for s in all_ if s.scene.machine.name == name]
        parts = {
            g for s in mine for g, c in steps[s.name].goals.items() if isinstance(g, Part) and c is not False
        }
        found += [judged(part, mine, steps) for part in sorted(parts - reached)]
    return found


def judged(goal: Goal, mine: list[Stage], steps: dict[str, AnyStep]) -> Unreached:
    proved = bool(mine) and not any(steps[s.name].reaches(goal) for s in mine)
    names = tuple(dict.fromkeys(s.scene.machine.name for s in mine))
    depth = max((s.scene.depth for s in mine), default=0)
    name = branches.named(goal) if isinstance(goal, Way) else goal
    print(
        f"not reached by {', '.join(names)}: {name}: {'proved' if proved else f'within {depth} operations'}"
    )
    return Unreached(goal, names, proved, depth)


def ways(site: branches.Site, arms: int, seen: set[Way]) -> list[Way]:
    """The ways of a branch that are not seen; of a switch, all that it has are seen but the last one, -1."""
    mine = {way.arm for way in seen if way.site == site}
    if len(mine) == arms:
        return []
    usual = {0, 1} if mine <= {0, 1} and arms == 2 else mine | {-1}
    return [Way(site, arm) for arm in sorted(usual - mine)]


def main(names: list[str]) -> int:
    all_, done = stages(), set[Goal]()
    unknown = set(names) - {s.name for s in all_} - {LEFT}
    if unknown:
        print(
            f"There is no search {sorted(unknown)[0]!r}; name some of {', '.join(s.name for s in all_)}, {LEFT}."
        )
        return 2
    judge = Judge(bundled("bundled"))
    for stage in all_:
        if not names or stage.name in names:
            search(stage, done, judge)
        done |= {way for w in read(stage.name) if w.taken for way in w.ways}
    judge.close()
    witnesses.cache_clear()
    if not names or LEFT in names:
        save_unreached(left(all_))
    total = {way for w in witnesses() for way in w.ways}
    print(f"{len(total)} of {branches.total()} branches have a witness; {len(witnesses())} witnesses in all")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
