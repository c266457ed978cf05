"""W3 and W6, rule by rule: of a good run one field is shown otherwise, and that rule tells it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest
from gallocheck.fuzz.checker import Checker
from gallocheck.fuzz.judge import Judge
from gallocheck.model.domain import Ints
from gallocheck.model.records import Kind, Observation, Op, Option, Status, Trace
from gallocheck.native.worker import Run
from gallocheck.spec import waiting, workspace

from .traces import START, attach, bundled, decode, open_, setup, trace

SYNC = Op(Kind.CTX_SYNC, 1)
SMALL = trace(open_(0), decode(0, 63, 1))
WIDE = trace(open_(0), decode(0, 64, 64))
#: lane 0 is ahead of lane 1 by a count when both need less
AHEAD = trace(open_(0), decode(0, 128, 64), decode(0, 1, 1), decode(0, 64, 1))
TOGETHER = trace(*START)
FAILS = trace(open_(0), open_(1), decode(1, 128, 64), attach(1), SYNC, decode(1, 1, 1))
APART = trace(open_(0), open_(1), attach(), made=setup(draft=Option.LIVE_CONTEXT))
CLOSED = trace(*START, Op(Kind.CTX_CLOSE, 1))


class Wrong(NamedTuple):
    """The rule (a part of its name), the run, the step, what it shows; `look`: of this allocator."""

    clause: str
    rule: str
    of: Trace
    at: int
    shows: dict[str, object]
    look: int | None = None


WRONG = (
    Wrong("W3", "lane 1 stays as it is for a batch of less than 64 tokens", SMALL, 1, {"fewer": (0, 1)}),
    Wrong("W3", "lane 1 follows a batch of at least 64 tokens", WIDE, 1, {"cells": (64, 8)}),
    Wrong("W3", "lane 1 does not follow lane 0's state", AHEAD, 3, {"fewer": (2, 2)}),
    Wrong("W3", "lane 1 does not follow lane 0's state", AHEAD, 3, {"fewer": (2, 3)}),
    Wrong("W3", "the draft's lane 0 does not have the buffers", TOGETHER, 2, {"asked": ((1,),)}, 2),
    Wrong("W6", "0 where the placement does not match", APART, 2, {"status": Status.DONE}),
    Wrong("W6", "not 0 where it matches", TOGETHER, 2, {"status": Status.REFUSED}),
    Wrong("W6", "-1 where the reservation failed", FAILS, 3, {"status": Status.DONE}),
    Wrong("W6", "1 where it did not", TOGETHER, 2, {"status": Status.FAILED}),
    Wrong("W6", "0 changes nothing", APART, 2, {"reserves": 1}),
    Wrong("W6", "0 changed what is reserved", APART, 2, {"fewer": (1, 0)}),
    Wrong("W6", "1 is shared", TOGETHER, 2, {"attached": 0}),
    Wrong("W6", "-1 is not shared, and leaves no scheduler", FAILS, 3, {"attached": 1}),
    Wrong("W6", "-1 is not shared, and leaves no scheduler", FAILS, 3, {"status": Status.DONE}, 2),
    Wrong("W6", "without a scheduler a decode is refused", FAILS, 5, {"status": Status.DONE}),
    Wrong("W6", "only attaching (or opening anew) brings a scheduler back", FAILS, 4, {"status": Status.DONE}, 2),
    Wrong("W6", "a context was closed, and the draft counts as attached", CLOSED, 3, {"attached": 1}),
)  # fmt: skip
#: other clauses' rules that are as new as these
OTHERS = (
    Wrong("W2", "a reservation that failed is none", trace(open_(0), decode(0, 128, 64, fail_nth=1)), 1,
          {"tokens": (128, 2), "cells": (64, 8)}),
    Wrong("W5", "reserves again only where it must", trace(open_(0), decode(0, 1, 1)), 1, {"reserves": 1}),
    Wrong("W8", "without options nothing is reserved again", trace(open_(0), decode(0, 1, 1), made=setup(Option(0))), 1,
          {"reserves": 1}),
)  # fmt: skip


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with bundled() as judge:
        yield judge


def told(judge: Judge, wrong: Wrong) -> list[tuple[str, str]]:
    """What is blamed where the run shows this: (clause, message)."""
    run = judge.run(wrong.of)
    assert run.death is None and judge.judge(wrong.of).failed is None
    steps = list(run.steps)
    seen = steps[wrong.at]
    if wrong.look is None:
        seen = type(seen)(replace(seen.obs, **wrong.shows), seen.looks, seen.places)  # type: ignore[arg-type]
    else:
        changed = replace(seen.looks.get(wrong.look, Observation(Status.DONE)), **wrong.shows)  # type: ignore[arg-type]
        seen = type(seen)(seen.obs, {**seen.looks, wrong.look: changed}, seen.places)
    steps[wrong.at] = seen
    run = Run(steps, run.leaked, run.death, run.opened, run.graphs)
    report = Checker(wrong.of, judge.caps, judge.fresh).check(run)
    return [(v.clause, v.message) for v in report.verdicts if v.sort == "broken" and v.step == wrong.at]


@pytest.mark.parametrize("wrong", WRONG + OTHERS, ids=lambda w: f"{w.clause} {w.rule}")
def test_one_wrong_field_breaks_the_rule(judge: Judge, wrong: Wrong) -> None:
    found = told(judge, wrong)
    assert [m for c, m in found if c == wrong.clause and wrong.rule in m], found


def test_every_rule_of_w3_and_w6_has_such_a_field() -> None:
    """The names are those of the rules, whatever the step is."""
    s = workspace.shape(workspace.Watched(Ints))
    ask, out = (
        workspace.PolicyOp(0),
        workspace.PolicyOut(1, 0, workspace.Parts(0, 0, 0), workspace.Parts(0, 0, 0)),
    )
    seen = workspace.seen(s)
    lanes = workspace.rules(Ints, s.frame, seen, ask, seen, out, s.calls)["W3"]
    two = waiting.Contexts(Ints).init()
    pair = waiting.rules(Ints, two, waiting.ContextOp(0), two, waiting.ContextOut(1))["W6"]
    written = {w.rule for w in WRONG}
    assert {*lanes, *pair} <= written
