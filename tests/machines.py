"""Hypothesis state machines that run model and subject side by side.

One machine for all layers: every rule asks the same of the subject, of the
reference session and of the contract's books, and every observation is compared
after every operation. A layer's test says which operations are drawn, and how often.
Deaths of a subject are not for this machine (see native.worker): it is for the
bundled allocator, in this process.
"""

from __future__ import annotations

from typing import Any, ClassVar

from gallocheck.fuzz.checker import Checker
from gallocheck.fuzz.draw import Draw, HypothesisDraw
from gallocheck.fuzz.fresh import Fresh
from gallocheck.fuzz.generate import draw_graphs
from gallocheck.fuzz.kept import kept
from gallocheck.fuzz.setups import Frame, draw_frame, with_capacities
from gallocheck.fuzz.words import describe_op
from gallocheck.model.records import Kind, Op, OpFlag, Status, Trace
from gallocheck.native.binding import Library
from gallocheck.native.library import library_path
from gallocheck.native.worker import LocalRunner, StepSeen
from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

ALLOCS = st.integers(0, 2)


class AllocatorMachine(RuleBasedStateMachine):
    """`pair`: owner and borrower are drawn. Sizes and capacities are drawn per example."""

    pair: ClassVar[bool] = False

    def frame(self, draw: Draw) -> Frame:
        """Types and configs of an example."""
        return draw_frame(draw, self.pair)

    @initialize(data=st.data())
    def begin(self, data: Any) -> None:
        draw = HypothesisDraw(data.draw)
        frame = self.frame(draw)
        graphs = draw_graphs(draw, frame)
        self.open(Trace(with_capacities(draw, frame, graphs, 0.5), graphs))
        self.do(Op(Kind.NEW, 0, 0))
        if self.pair:
            self.do(Op(Kind.OWN, 0))

    def open(self, trace: Trace) -> None:
        """Opens a session of the trace's setup, and knows its graphs."""
        path = library_path("bundled")
        self.library, self.runner = Library(path), LocalRunner(path)
        self.session = self.library.open(trace.setup)
        for graph in trace.graphs:
            self.session.define(graph)
        self.trace = trace
        self.checker = Checker(trace, self.library.capabilities, Fresh(self.runner.run))
        self.alive: set[int] = set()
        self.types = len(trace.setup.types)
        self.configs = len(trace.setup.configs)

    def do(self, op: Op) -> None:
        """One operation on all sides; fails the test with the clause's name."""
        if currently_in_test_context():  # not where a kept trace is replayed
            note(describe_op(op, self.trace))
        (obs,) = self.session.run([op])
        if obs.status == Status.DONE:
            self.alive |= {op.alloc} if op.kind == Kind.NEW else set()
            self.alive -= {op.alloc} if op.kind == Kind.FREE else set()
        others = sorted(self.alive - {op.alloc})
        looks = dict(zip(others, self.session.run([Op(Kind.LOOK, a) for a in others]), strict=True))
        places = None
        if op.kind == Kind.ALLOC and obs.status == Status.DONE:
            places = self.session.places(op.alloc, len(self.trace.graphs[op.graph].tensors))
        for verdict in self.checker.step(op, StepSeen(obs, looks, places)):
            assert verdict.sort == "misuse", f"{verdict}: expected {verdict.expected}, seen {verdict.seen}"
        self.checker.at += 1

    def graph(self, n: int) -> int:
        return n % len(self.trace.graphs)

    @rule(alloc=ALLOCS, config=st.integers(0, 3))
    def new(self, alloc: int, config: int) -> None:
        self.do(Op(Kind.NEW, alloc, config % self.configs))

    @rule(
        alloc=ALLOCS,
        graph=st.integers(0, 3),
        fail=st.integers(0, 7),
        nth=st.integers(0, 3),
        inject=st.booleans(),
    )
    def reserve(self, alloc: int, graph: int, fail: int, nth: int, inject: bool) -> None:
        fail, nth = (fail % (1 << self.types), nth) if inject else (0, 0)
        self.do(Op(Kind.RESERVE, alloc, graph=self.graph(graph), fail_types=fail, fail_nth=nth))

    @rule(alloc=ALLOCS, graph=st.integers(0, 3), nth=st.sampled_from((0, 0, 0, 1)))
    def alloc(self, alloc: int, graph: int, nth: int) -> None:
        self.do(Op(Kind.ALLOC, alloc, graph=self.graph(graph), fail_nth=nth))

    @rule(alloc=ALLOCS)
    def compute(self, alloc: int) -> None:
        self.do(Op(Kind.COMPUTE, alloc))

    @rule(alloc=ALLOCS, graph=st.integers(0, 3))
    def measure(self, alloc: int, graph: int) -> None:
        self.do(Op(Kind.MEASURE, alloc, graph=self.graph(graph)))

    @rule(alloc=ALLOCS)
    def free(self, alloc: int) -> None:
        self.do(Op(Kind.FREE, alloc))

    @rule(kind=st.integers(0, 2), size=st.sampled_from((0, 1 << 10, 1 << 16, 2**64 - 1)))
    def capacity(self, kind: int, size: int) -> None:
        self.do(Op(Kind.CAPACITY, other=kind % self.types, value=size))

    @precondition(lambda self: self.pair)
    @rule(alloc=ALLOCS, other=ALLOCS)
    def borrow(self, alloc: int, other: int) -> None:
        self.do(Op(Kind.BORROW, alloc, other))

    @precondition(lambda self: self.pair)
    @rule(alloc=ALLOCS)
    def own(self, alloc: int) -> None:
        self.do(Op(Kind.OWN, alloc))

    @precondition(lambda self: self.pair)
    @rule(alloc=ALLOCS)
    def shrink(self, alloc: int) -> None:
        self.do(Op(Kind.SHRINK, alloc))

    @precondition(lambda self: self.pair)
    @rule(alloc=ALLOCS)
    def remake(self, alloc: int) -> None:
        self.do(Op(Kind.REMAKE, alloc))

    def replay(self, trace: Trace) -> None:
        """All of a trace, as it is."""
        self.open(trace)
        for op in trace.ops:
            AllocatorMachine.do(self, op)
        self.teardown()

    def teardown(self) -> None:
        if hasattr(self, "session"):
            assert self.session.close() == 0, "G5: bytes stay in use after every allocator was freed"
            self.runner.close()


def fits(trace: Trace) -> bool:
    """Whether a kept trace is for these machines: of allocators alone, and of what runs in this process."""
    apart = any(op.kind >= Kind.CTX_OPEN or op.flags & OpFlag.UNCHECKED for op in trace.ops)
    return not apart and not trace.setup.contexts


def replaying(machine: type[AllocatorMachine]) -> Any:
    """The machine's test case; it runs the kept traces first (gallocheck.fuzz.kept)."""

    class Replaying(machine.TestCase):  # type: ignore[name-defined, misc]
        def runTest(self) -> None:
            for trace in filter(fits, kept()):
                machine().replay(trace)
            super().runTest()

    return Replaying
