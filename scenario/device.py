"""The bundled subject on simulated devices, with its memory written down after every operation.

Large buffers are only reserved. Where a graph is computed, of a tensor above 128 KiB the edges and one byte
a page are written and verified (gc_oracle.h), so a batch of 220 MiB takes some tens of milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ..model.records import BufferType, Cap, Graph, Kind, Observation, Op, Setup, Status, Tensor
from ..native.binding import Library
from ..native.header import SubjectError
from ..native.library import library_path
from .report import MIB, Curve

PAGE = 2 * MIB  #: bytes; a CUDA device gives memory in units of 2 MiB


class Session(Protocol):
    """A session of a subject (native.binding.Session)."""

    def define(self, graph: Graph) -> int: ...

    def run(self, ops: Sequence[Op]) -> list[Observation]: ...

    def close(self) -> int: ...


def subject(needs: Cap, path: Path | None = None) -> Library:
    """The bundled subject. Raises SubjectError where it cannot do what a scenario needs."""
    library = Library(path or library_path("bundled"))
    if needs & ~library.capabilities:
        lacks = ", ".join(str(c.name).lower() for c in Cap if c & needs & ~library.capabilities)
        raise SubjectError(f"{library.path} does not declare {lacks}: build gallocheck again.")
    return library


def card(mib: int) -> BufferType:
    """A card's memory, `mib` MiB of it."""
    return BufferType(alignment=256, granularity=PAGE, capacity=mib * MIB)


def one_tensor(mib: float) -> Graph:
    """A graph that needs one buffer of `mib` MiB."""
    return Graph((Tensor(round(mib * MIB)),))


class Run:
    """One session. `outside[d]`: MiB of device d that others hold; they count as in use, and the device has them
    less. `peak[d]`: the most that was in use on device d since `forget_peak`, MiB."""

    def __init__(
        self,
        library: Library,
        setup: Setup,
        graphs: Sequence[Graph],
        names: Sequence[str],
        outside: Sequence[int] = (),
    ) -> None:
        self.session: Session = library.open(setup)
        for graph in graphs:
            if self.session.define(graph) < 0:
                raise SubjectError(f"{library.path} does not take a graph of this scenario: build it again.")
        self.outside = [*outside, *[0] * len(names)][: len(names)]
        self.curves = [Curve(name) for name in names]
        self.peak = [0.0] * len(names)
        for d, mib in enumerate(self.outside):
            if mib:
                less = setup.types[d].capacity - mib * MIB
                self.do("others hold memory", Op(Kind.CAPACITY, other=d, value=less))

    def do(self, what: str, op: Op) -> Observation:
        """One operation; its memory goes to the curves under the words `what`."""
        seen = self.session.run([op])[0]
        for d, curve in enumerate(self.curves):
            mib = seen.used[d] / MIB + self.outside[d]
            curve.mib.append(mib)
            curve.steps.append(what)
            if seen.status == Status.REFUSED:
                curve.refused.append(len(curve.mib) - 1)
            self.peak[d] = max(self.peak[d], mib)
        return seen

    def must(self, what: str, op: Op) -> Observation:
        """An operation that has to be done. Raises SubjectError where it is not."""
        seen = self.do(what, op)
        if seen.status != Status.DONE or seen.trouble:
            raise SubjectError(
                f"The bundled subject did not {what} in a scenario (it answered {seen.status.name})."
            )
        return seen

    def now(self, d: int) -> float:
        """MiB in use on device d, others' too."""
        return self.curves[d].mib[-1]

    def forget_peak(self) -> None:
        self.peak = [curve.mib[-1] for curve in self.curves]

    def close(self) -> None:
        self.session.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
