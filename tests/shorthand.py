"""Tensors and graphs in few words, for hand-made examples. Sizes are bytes."""

from __future__ import annotations

from gallocheck.fuzz.checker import Checker, Report
from gallocheck.fuzz.fresh import Fresh
from gallocheck.model.records import BufferType, Flag, Graph, Op, Setup, Tensor, Trace
from gallocheck.native.library import library_path
from gallocheck.native.worker import LocalRunner

NONE = Flag(0)
BYTES = (BufferType(),)  #: one type without alignment or limits


def graph(*tensors: Tensor) -> Graph:
    return Graph(tensors)


def given(size: int, slot: int = 0, output: bool = False) -> Tensor:
    """An input."""
    return Tensor(size, (), Flag.LEAF | Flag.INPUT | (Flag.OUTPUT if output else NONE), slot)


def leaf(size: int, slot: int = 0, pad: int = 0) -> Tensor:
    return Tensor(size, (), Flag.LEAF, slot, pad)


def weight(size: int) -> Tensor:
    """A preallocated leaf."""
    return Tensor(size, (), Flag.LEAF | Flag.PREALLOC)


def node(size: int, *src: int, slot: int = 0, pad: int = 0, flags: Flag = NONE) -> Tensor:
    return Tensor(size, src, flags, slot, pad)


def out(size: int, *src: int, slot: int = 0, flags: Flag = NONE) -> Tensor:
    """A node that is an output."""
    return Tensor(size, src, flags | Flag.OUTPUT, slot)


def inplace(size: int, *src: int, slot: int = 0, flags: Flag = NONE) -> Tensor:
    return Tensor(size, src, flags | Flag.INPLACE, slot)


def view(size: int, root: int, offset: int = 0, output: bool = False) -> Tensor:
    return Tensor(size, (root,), Flag.OUTPUT if output else NONE, 0, 0, root, offset)


def plain(*ops: Op, graphs: tuple[Graph, ...], types: tuple[BufferType, ...] = BYTES) -> Trace:
    """A trace whose one config lists every type once."""
    return Trace(Setup(types, (tuple(range(len(types))),)), graphs, ops)


def judged(runner: LocalRunner, trace: Trace) -> Report:
    """Runs a trace in this process and judges it."""
    return Checker(trace, runner.capabilities, Fresh(runner.run)).check(runner.run(trace))


def bundled() -> LocalRunner:
    """The bundled subject in this process."""
    return LocalRunner(library_path("bundled"))
