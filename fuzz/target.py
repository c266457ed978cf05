"""The whole check as a fuzz target: bytes become choices, choices a trace, and the trace is run and judged.

    fuzz_one_input(data)                      for any fuzzer that has bytes
    python -m gallocheck.fuzz.target [libFuzzer's options]        Atheris drives it

The subject is the bundled allocator; GALLOCHECK_SUBJECT names another library, GALLOCHECK_DEFECT the number of
a planted defect. It runs in a process of its own, so that its death is a failure like any other.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import TypeVar

from ..model.records import Cap, Trace
from ..native.library import library_path
from .draw import Draw, RandomDraw
from .found import profiles_for
from .judge import Judge
from .legal import legal
from .profiles import SOURCES
from .verdict import Verdict
from .words import describe_trace

T = TypeVar("T")


class CheckFailed(AssertionError):
    """A trace breaks the contract; the text says how, and shows the trace."""


class BytesDraw:
    """Choices read from bytes. When they are used up, choices are random, of a seed that the bytes are: a
    short input means a whole trace, too, and none goes on for ever, as it might were all choices the same."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.rest = RandomDraw(random.Random(data))

    def integer(self, low: int, high: int) -> int:
        span = high - low
        if span <= 0:
            return low
        size = (span.bit_length() + 7) // 8
        if self.at + size > len(self.data):
            self.at = len(self.data)
            return self.rest.integer(low, high)
        raw, self.at = self.data[self.at : self.at + size], self.at + size
        return low + int.from_bytes(raw, "little") % (span + 1)

    def choice(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def boolean(self, p: float) -> bool:
        if self.at == len(self.data):
            return self.rest.boolean(p)
        return p > 0 and self.integer(0, 255) >= 256 - max(1, round(256 * p))


@cache
def subject() -> Judge:
    """The subject of this process. Raises SubjectError; ValueError where GALLOCHECK_DEFECT is no number."""
    defect = int(os.environ.get("GALLOCHECK_DEFECT") or 0)
    name = os.environ.get("GALLOCHECK_SUBJECT") or str(library_path("planted" if defect else "bundled"))
    return Judge(name, defect)


def trace_of(data: bytes, caps: Cap) -> Trace:
    """The trace that these bytes mean, for a subject of capabilities `caps`; any bytes mean one."""
    return trace_from(BytesDraw(data), caps)


def trace_from(draw: Draw, caps: Cap) -> Trace:
    """A trace of any kind that a subject of these capabilities is drawn."""
    return SOURCES[draw.choice(profiles_for(caps))].draw(draw, caps)


def check(trace: Trace, judge: Judge | None = None) -> None:
    """Runs and judges a trace. Raises CheckFailed."""
    failed = (judge or subject()).judge(trace).failed
    if failed is not None:
        raise CheckFailed(explained(failed, trace))


def explained(failed: Verdict, trace: Trace) -> str:
    sides = {"expected": failed.expected, "seen": failed.seen}
    lines = [str(failed), *(f"{name} {text}" for name, text in sides.items() if text)]
    return "\n".join([*lines, describe_trace(trace)])


def fuzz_one_input(data: bytes) -> None:
    """One input of a fuzzer. Raises CheckFailed, with the verdict's words, where the subject fails."""
    trace = trace_of(data, subject().caps)
    if legal(trace):  # nearly all are
        check(trace)


def rules() -> Iterator[FunctionType]:
    """The functions of the model and of the clauses: what a fuzzer that follows Python code is to reach."""
    rooms = tuple(f"{(__package__ or 'gallocheck').split('.')[0]}.{room}." for room in ("model", "spec"))
    for name, module in list(sys.modules.items()):
        if name.startswith(rooms):
            things = list(vars(module).values())
            things += [x for c in things if isinstance(c, type) for x in vars(c).values()]
            yield from (x for x in things if isinstance(x, FunctionType) and x.__module__ == name)


def main(arguments: Sequence[str]) -> None:
    """Lets Atheris drive the check; it ends the process."""
    try:
        atheris = import_module("atheris")  # only where it is installed
    except ImportError:
        sys.exit("Atheris is not installed: pip install atheris, then run this again.")
    subject()  # what cannot be used is said before anything runs
    for function in rules():
        atheris.instrument_func(function)
    atheris.Setup([sys.argv[0], *arguments], fuzz_one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
