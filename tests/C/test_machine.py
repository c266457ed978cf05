"""C: schedulers, model and bundled allocator side by side."""

from __future__ import annotations

from gallocheck.model.records import Kind, Op, OpFlag
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.machines import ALLOCS, AllocatorMachine, replaying

GRAPHS = st.integers(0, 3)


class SchedulerMachine(AllocatorMachine):
    """Every allocator is behind a scheduler; some are made for few tensors (C3)."""

    pair = True

    def do(self, op: Op) -> None:
        if op.kind == Kind.NEW:
            op = Op(Kind.NEW, op.alloc, op.other, flags=OpFlag.BY_SCHED, value=op.alloc * 2)
        super().do(op)

    @rule(alloc=ALLOCS, graph=GRAPHS, nth=st.sampled_from((0, 0, 0, 1)), run_async=st.booleans())
    def computes(self, alloc: int, graph: int, nth: int, run_async: bool) -> None:
        flags = OpFlag.ASYNC if run_async else OpFlag(0)
        self.do(Op(Kind.COMPUTE, alloc, graph=self.graph(graph), fail_nth=nth, flags=flags))

    @rule(alloc=ALLOCS)
    def sync(self, alloc: int) -> None:
        self.do(Op(Kind.SYNC, alloc))

    @rule(alloc=ALLOCS)
    def reset(self, alloc: int) -> None:
        self.do(Op(Kind.RESET, alloc))


TestSchedulers = replaying(SchedulerMachine)
TestSchedulers.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
