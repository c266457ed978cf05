"""R: owner and borrower, model and bundled allocator side by side."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.machines import AllocatorMachine, replaying


class PairMachine(AllocatorMachine):
    pair = True


TestPair = replaying(PairMachine)
TestPair.settings = settings(
    max_examples=80, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
