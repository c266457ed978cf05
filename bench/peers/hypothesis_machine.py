"""The same check as a Hypothesis state machine: one trace at a time, R on the bundled subject.

Nothing but what the lanes do too: the reference beside the subject, every observation compared,
placements after each ALLOC, bytes in use at the end. Prints operations and seconds as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from gallocheck.fuzz import exact
from gallocheck.fuzz.draw import HypothesisDraw
from gallocheck.fuzz.generate import draw_graphs
from gallocheck.fuzz.setups import draw_frame, with_capacities
from gallocheck.model.records import Kind, Op, Status
from gallocheck.model.stack import Stack
from gallocheck.native.binding import Library
from gallocheck.native.library import library_path
from gallocheck.native.worker import StepSeen
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

ALLOCS, GRAPHS = st.integers(0, 2), st.integers(0, 3)
STEPS = 48
library = Library(library_path("bundled"))
done = 0


class Machine(RuleBasedStateMachine):
    """Owner, borrower and a third allocator, as in fuzz/batch/draw.py."""

    @initialize(data=st.data())
    def begin(self, data: Any) -> None:
        draw = HypothesisDraw(data.draw)
        frame = draw_frame(draw, True)
        self.graphs = draw_graphs(draw, frame)
        self.setup = with_capacities(draw, frame, self.graphs, 0.5)
        self.session = library.open(self.setup)
        for graph in self.graphs:
            self.session.define(graph)
        self.reference = Stack(self.setup, list(self.graphs), chunks=16)
        for op in (Op(Kind.NEW), Op(Kind.OWN), Op(Kind.NEW, 1), Op(Kind.BORROW, 1, 0)):
            self.do(op)

    def do(self, op: Op) -> None:
        global done
        (obs,) = self.session.run([op])
        done += obs.status != Status.MISUSE
        places = None
        if op.kind == Kind.ALLOC and obs.status == Status.DONE:
            places = self.session.places(op.alloc, len(self.graphs[op.graph].tensors))
        for name, want, have in exact.differences(self.reference, op, StepSeen(obs, {}, places)):
            raise AssertionError(f"{name}: {want}, {have}")

    @rule(alloc=ALLOCS, graph=GRAPHS, fail=st.integers(0, 7), nth=st.integers(0, 4), inject=st.booleans())
    def reserve(self, alloc: int, graph: int, fail: int, nth: int, inject: bool) -> None:
        fail, nth = (fail % (1 << len(self.setup.types)), nth) if inject else (0, 0)
        self.do(Op(Kind.RESERVE, alloc, graph=graph % len(self.graphs), fail_types=fail, fail_nth=nth))

    @rule(alloc=ALLOCS, graph=GRAPHS)
    def alloc(self, alloc: int, graph: int) -> None:
        self.do(Op(Kind.ALLOC, alloc, graph=graph % len(self.graphs)))

    @rule(alloc=ALLOCS, graph=GRAPHS)
    def measure(self, alloc: int, graph: int) -> None:
        self.do(Op(Kind.MEASURE, alloc, graph=graph % len(self.graphs)))

    @rule(alloc=ALLOCS, config=st.integers(0, 3))
    def new(self, alloc: int, config: int) -> None:
        self.do(Op(Kind.NEW, alloc, config % len(self.setup.configs)))

    @rule(alloc=st.integers(1, 2))
    def borrow(self, alloc: int) -> None:
        self.do(Op(Kind.BORROW, alloc, 0))

    @rule(alloc=ALLOCS, kind=st.sampled_from((Kind.COMPUTE, Kind.SHRINK, Kind.FREE, Kind.OWN, Kind.REMAKE)))
    def simple(self, alloc: int, kind: Kind) -> None:
        self.do(Op(kind, alloc))

    @rule(device=st.integers(0, 2), size=st.sampled_from((0, 1 << 10, 1 << 16, 1 << 62)))
    def capacity(self, device: int, size: int) -> None:
        self.do(Op(Kind.CAPACITY, other=device % len(self.setup.types), value=size))

    def teardown(self) -> None:
        if hasattr(self, "session"):
            assert self.session.close() == 0


def main(seconds: float) -> None:
    """Runs whole test functions of 100 examples until the time is over."""
    start = time.process_time()
    how = settings(
        max_examples=100, stateful_step_count=STEPS, database=None, deadline=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    while time.process_time() - start < seconds:
        run_state_machine_as_test(Machine, settings=how)
    print(json.dumps({"operations": done, "seconds": time.process_time() - start}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
