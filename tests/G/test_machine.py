"""G: plain allocators with long histories, model and bundled allocator side by side."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.machines import AllocatorMachine, replaying


class GraphAllocatorMachine(AllocatorMachine):
    pair = False


TestGraphAllocator = replaying(GraphAllocatorMachine)
TestGraphAllocator.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
