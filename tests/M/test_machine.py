"""M: owner and borrower on types over several devices, model and bundled allocator side by side."""

from __future__ import annotations

from gallocheck.fuzz.draw import Draw
from gallocheck.fuzz.setups import Frame, draw_meta_frame
from hypothesis import HealthCheck, settings

from tests.machines import AllocatorMachine, replaying


class MetaMachine(AllocatorMachine):
    pair = True

    def frame(self, draw: Draw) -> Frame:
        return draw_meta_frame(draw)


TestMeta = replaying(MetaMachine)
TestMeta.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
