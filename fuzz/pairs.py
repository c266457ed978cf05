"""P, G and R on one step of an allocator or pair, whoever asked for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..model.records import Cap, Op
from ..native.worker import StepSeen
from ..spec import resizable
from ..spec.resizable import Step
from . import alloc
from .applies import applies
from .ledger import Ledger, is_plain

#: what a clause of R says of a plain allocator that has no generations: the clause of G it follows from
PLAIN = {"R3": "G1", "R4": "G1", "R5": "G1", "R6": "G1", "R9": "G2", "R10": "G2", "R11": "G5"}
#: where one fault breaks several clauses, the one that says most of it comes first
FIRST = {"M1": -1, "P12": 0, "R10": 0, "R11": 0}


def broken(
    op: Op, seen: StepSeen, step: Step, ledger: Ledger, history: alloc.History, tally: Counter[str]
) -> Iterator[tuple[str, str]]:
    """(clause, message) of what the step breaks, the most telling first; adds to `tally` what it exercised."""
    yield from alloc.plan_rules(op, seen, ledger, history)
    if ledger.blind or not ledger.sure(op):
        return
    said = resizable.judge(step)
    for clause in said.exercised:
        name = name_of(clause, step, ledger.caps)
        if applies(name, ledger.caps):
            tally[name] += 1
    first = FIRST if step.out.ok else FIRST | {"R3": 2}  # how a failure must end says more than its sizes
    for clause, part in sorted(said.broken, key=lambda found: first.get(found[0], 1)):
        name = name_of(clause, step, ledger.caps)
        if applies(name, ledger.caps):
            yield name, part


def name_of(clause: str, step: Step, caps: Cap) -> str:
    """The clause by which a subject is held to a rule; for a plain allocator, of G."""
    if not is_plain(step.g, step.h):
        return clause
    if not caps & Cap.EXACT:  # it need not have readings; the harness decides what is outdated
        return PLAIN.get(clause, "" if clause in ("R7", "R8", "R12") else clause)
    if clause == "R11":
        return PLAIN[clause]
    return clause
