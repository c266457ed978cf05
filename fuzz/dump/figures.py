"""What plans need, beside what no plan can do without."""

from __future__ import annotations

from dataclasses import dataclass

from ...spec.optimum import lower_bound, true_minimum
from .found import Verdicts

SMALL = 24  #: tensors up to which the true minimum is looked for
SECONDS = 2.0  #: for each graph
IN_ALL = 30.0  #: seconds; after that no minimum is looked for


@dataclass(frozen=True, slots=True)
class Figure:
    """One plan: bytes by type. `minimum`: () where the graph is not small, or Z3 needs longer."""

    graph: int
    line: int
    allocator: int
    tensors: int
    types: tuple[str, ...]
    chunks: tuple[int, ...]
    peak: tuple[int, ...]
    bound: tuple[int, ...]
    minimum: tuple[int, ...]


def figures(verdicts: Verdicts) -> list[Figure]:
    """Of every plan once: what it needs, the lower bound and, for small graphs, the true minimum."""
    out: dict[object, Figure] = {}
    most = int(IN_ALL / SECONDS)
    for plan in verdicts.plans:
        view = plan.view
        key = (view.graph, plan.peak, plan.type_names)
        if key in out:
            continue
        few = len(view.graph.tensors) <= SMALL and len(out) < most
        out[key] = Figure(
            plan.number, plan.line, plan.allocator, len(view.graph.tensors), plan.type_names,
            tuple(len(chunks) for chunks in view.chunks), plan.peak,
            lower_bound(view.types, view.slots, view.graph),
            (true_minimum(view.types, view.slots, view.graph, SECONDS) or ()) if few else (),
        )  # fmt: skip
    return list(out.values())
