"""R12: the comparison of generations carries weight. Without it, the same sequence touches freed memory."""

from __future__ import annotations

import pytest
from gallocheck.fuzz.checker import Report
from gallocheck.fuzz.judge import Judge
from gallocheck.model.records import BufferType, Kind, Op, OpFlag, Setup, Status, Trace
from gallocheck.native.library import library_path
from gallocheck.native.worker import Run

from tests.shorthand import given, graph, out

SMALL, LARGE = graph(given(64), out(64, 0)), graph(given(8192), out(8192, 0))
ATTACH = (Op(Kind.NEW), Op(Kind.OWN), Op(Kind.NEW, 1), Op(Kind.BORROW, 1, 0))
BOUND = (Op(Kind.RESERVE), Op(Kind.ALLOC), Op(Kind.COMPUTE))  # the owner, graph 0
DEFECT = 74  #: a graph is computed without comparing generations


def trace(role: int, flags: OpFlag, types: tuple[BufferType, ...] = (BufferType(),)) -> Trace:
    """`role` binds and computes a graph, the other role's reserve replaces the buffers, it computes again."""
    mine = tuple(Op(op.kind, role) for op in BOUND)
    last = (Op(Kind.RESERVE, 1 - role, graph=1), Op(Kind.COMPUTE, role, flags=flags))
    return Trace(Setup(types, (tuple(range(len(types))),)), (SMALL, LARGE), (*ATTACH, *mine, *last))


def run(t: Trace, library: str = "bundled", defect: int = 0) -> tuple[Run, Report]:
    with Judge(str(library_path(library)), defect, timeout=2.0) as judge:
        return judge.run(t), judge.judge(t)


KINDS = [(BufferType(),), (BufferType(granularity=4096), BufferType())]


@pytest.mark.parametrize("role", [0, 1])
@pytest.mark.parametrize("types", KINDS)
def test_without_the_check_it_touches_freed_memory(role: int, types: tuple[BufferType, ...]) -> None:
    seen, report = run(trace(role, OpFlag.UNCHECKED, types))
    assert seen.death is not None and seen.death.kind == "fault"
    assert seen.death.op == Op(Kind.COMPUTE, role, flags=OpFlag.UNCHECKED) and seen.death.step == 8
    assert report.failed is None, "it is what R12 says that must happen"
    assert report.tally["R12"] >= 1


@pytest.mark.parametrize("role", [0, 1])
@pytest.mark.parametrize("types", KINDS)
def test_with_the_check_the_graph_is_dropped(role: int, types: tuple[BufferType, ...]) -> None:
    t = trace(role, OpFlag(0), types)
    seen, report = run(t)
    assert seen.death is None and seen.steps[-1].obs.status == Status.STALE
    assert report.failed is None and report.tally["R12"] >= 1
    again = (Op(Kind.COMPUTE, role), Op(Kind.RESERVE, role), Op(Kind.ALLOC, role), Op(Kind.COMPUTE, role))
    seen, report = run(Trace(t.setup, t.graphs, t.ops + again))
    assert [s.obs.status for s in seen.steps[-4:]] == [Status.MISUSE, Status.DONE, Status.DONE, Status.DONE]
    assert report.failed is None


@pytest.mark.parametrize("role", [0, 1])
def test_a_subject_that_does_not_compare_is_blamed(role: int) -> None:
    seen, report = run(trace(role, OpFlag(0)), "planted", DEFECT)
    assert seen.death is not None and seen.death.kind == "fault"
    assert report.failed is not None and (report.failed.clause, report.failed.step) == ("R12", 8)


@pytest.mark.parametrize("role", [0, 1])
def test_without_the_check_a_current_graph_computes(role: int) -> None:
    """The flag alone is no fault: only outdated memory is."""
    t = trace(role, OpFlag.UNCHECKED)
    fits = (*t.ops[:-2], Op(Kind.RESERVE, 1 - role), t.ops[-1])
    seen, report = run(Trace(t.setup, t.graphs, fits))
    assert seen.death is None and seen.steps[-1].obs.status == Status.DONE and report.failed is None
