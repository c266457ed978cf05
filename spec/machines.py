"""Every state machine that is proved, in the contract's order."""

from __future__ import annotations

from importlib import import_module, util

from .machine import Machine

MODULES = (
    "pair",
    "meta",
    "counted",
    "beside",
    "scheduler",
    "pool",
    "capture",
    "workspace",
    "waiting",
    "server",
)


def _machine(name: str) -> Machine | None:
    if util.find_spec(f"{__package__}.{name}") is None:
        return None
    found: Machine | None = getattr(import_module(f"{__package__}.{name}"), "MACHINE", None)
    return found


MACHINES = tuple(m for m in map(_machine, MODULES) if m is not None)
