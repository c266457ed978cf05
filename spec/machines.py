"""Every state machine that is proved, in the contract's order."""

from __future__ import annotations

from . import beside, capture, counted, meta, pair, pool, scheduler, server, waiting, workspace
from .machine import Machine

MACHINES: tuple[Machine, ...] = (
    pair.MACHINE,
    meta.MACHINE,
    counted.MACHINE,
    beside.MACHINE,
    scheduler.MACHINE,
    pool.MACHINE,
    capture.MACHINE,
    workspace.MACHINE,
    waiting.MACHINE,
    server.MACHINE,
)
