"""Which functions of the model run when a trace does: what code a clause is about is seen, not listed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from gallocheck import model
from gallocheck.model import oracle, planner, template
from gallocheck.model.records import Trace
from gallocheck.model.stack import Stack

from .code import Function, function_at, name_of

MODEL = Path(str(model.__file__)).parent
#: not rules: the domains, records and the layers that only say which machine an operation is about
_PLUMBING = {"domain.py", "lanes.py", "terms.py", "records.py", "__init__.py"}


class Running:
    """While it is open: the functions of a folder that are called, in order."""

    def __init__(self, folder: Path = MODEL) -> None:
        self.folder = folder
        self.called: dict[tuple[str, int], None] = {}

    def __enter__(self) -> Running:
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            self.called[frame.f_code.co_filename, frame.f_code.co_firstlineno] = None

    def functions(self) -> list[Function]:
        found: dict[tuple[str, int], Function] = {}
        for file, line in self.called:
            path = Path(file)
            if path.parent != self.folder or path.name in _PLUMBING:
                continue
            f = function_at(name_of(file), line)
            if f is not None:
                found.setdefault((f.file, f.first), f)
        return list(found.values())


def forget() -> None:
    """What the model keeps of earlier runs would not run again."""
    for module in (planner, oracle, template):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def last_step(trace: Trace) -> list[Function]:
    """The model's functions that run in the last operation of a trace."""
    return _of(trace, lambda n: n == len(trace.ops) - 1)


def whole(trace: Trace) -> list[Function]:
    """The model's functions that run in a trace."""
    return _of(trace, lambda n: True)


def _of(trace: Trace, wanted: Callable[[int], bool]) -> list[Function]:
    forget()
    stack = Stack(trace.setup, list(trace.graphs))
    running = Running()
    for n, op in enumerate(trace.ops):
        if wanted(n):
            with running:
                stack.step(op)
        else:
            stack.step(op)
    return running.functions()
