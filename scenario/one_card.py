"""The first document: one RTX 4090, a target and its MTP draft, buffers apart and by reference count."""

from __future__ import annotations

from collections.abc import Callable

from ..model.records import VALIDATED, Cap, Kind, Observation, Op, OpFlag, Setup, Status, Strategy
from ..native.binding import Library
from . import seeds
from .device import PAGE, Run, card, one_tensor, subject
from .report import MIB, Curve, Figure, Report

WEIGHTS, TARGET, DRAFT = 0, 1, 2  #: allocators: weights and cache, the target's scheduler, the draft's
NAMES = {
    Strategy.APART: "independent",
    Strategy.COUNTED: "by reference count",
    Strategy.PAIR: "owner and borrower",
}
DERIVED = (
    f"1,042 MiB saved: sharing turns a sum into a maximum, so the smaller of the two contexts' buffers is"
    f" {seeds.SAVED} MiB.",
    "Everything else (weights, cache, driver) is the baseline: the stated peak less both buffers.",
)
ASSUMED = (
    f"The target's buffers are as large as the draft's, {seeds.SAVED} MiB: the figures do not say, and no figure"
    " here depends on it.",
    "Buffers are reserved, not computed in.",
)


def baseline() -> tuple[int, int]:
    """MiB of weights and cache in whole pages, and the rest that is no whole page: counted as others'."""
    mib = seeds.PEAK_APART - 2 * seeds.SAVED
    return mib - mib % (PAGE // MIB), mib % (PAGE // MIB)


def start(library: Library, strategy: Strategy, lost: int = 0) -> tuple[Run, Observation]:
    """A server's start: weights and cache, the target, the draft. `lost`: MiB that others hold.

    The session, and what the last reservation answered.
    """
    held, rest = baseline()
    graphs = (one_tensor(held), one_tensor(seeds.SAVED))
    setup = Setup((card(seeds.RTX_4090),), ((0,),), strategy)
    run = Run(library, setup, graphs, ["RTX 4090"], [rest + lost])
    run.must("make the allocator of weights and cache", Op(Kind.NEW, WEIGHTS))
    run.must("load weights and cache", Op(Kind.RESERVE, WEIGHTS, graph=0))
    for alloc in (TARGET, DRAFT):
        run.must("make a context's scheduler", Op(Kind.NEW, alloc, flags=OpFlag.BY_SCHED))
    run.must("let the target share", Op(Kind.OWN, TARGET))
    if strategy != Strategy.APART:
        run.must("attach the draft", Op(Kind.BORROW, DRAFT, TARGET, value=VALIDATED))
    run.do("reserve for the target", Op(Kind.RESERVE, TARGET, graph=1))
    return run, run.do("reserve for the draft", Op(Kind.RESERVE, DRAFT, graph=1))


def peak() -> Report:
    """Peak memory, apart and shared."""
    library = subject(Cap.COUNTED | Cap.SCHED)
    report = Report("peak", "RTX 4090, Qwen3.8-27B with MTP: peak of GPU memory", DERIVED, ASSUMED)
    report.limits["the card"] = seeds.RTX_4090
    stated = {Strategy.APART: seeds.PEAK_APART, Strategy.COUNTED: seeds.PEAK_SHARED, Strategy.PAIR: None}
    why = {
        Strategy.APART: "met by construction: the baseline is what is left of it",
        Strategy.COUNTED: "one set of buffers with two references (S1)",
        Strategy.PAIR: "not in the document; the other design gives the same here (R3)",
    }
    found = {}
    for strategy in (Strategy.APART, Strategy.COUNTED, Strategy.PAIR):
        run, _ = start(library, strategy)
        with run:
            found[strategy] = run.peak[0]
        report.figures.append(Figure(NAMES[strategy], stated[strategy], found[strategy], why=why[strategy]))
        report.curves.append(_named(run, strategy))
    saved = found[Strategy.APART] - found[Strategy.COUNTED]
    report.figures.append(Figure("saved by sharing", seeds.SAVED, saved, why="the draft's buffers (S1)"))
    return report


def pressure() -> Report:
    """The start beside 1,024 MiB of others."""
    library = subject(Cap.COUNTED | Cap.SCHED)
    derived = (
        *DERIVED,
        f"{seeds.PEAK_APART:,} + {seeds.PRESSURE:,} MiB are less than the card's {seeds.RTX_4090:,}: with nothing else on"
        " it, both would start. The document's outcome needs"
        f" {seeds.LEAST_LOST} to {seeds.MOST_LOST:,} MiB more that are not to be had.",
    )
    assumed = (*ASSUMED, f"The least of these, {seeds.LEAST_LOST} MiB (driver, display), is held by others.")
    report = Report(
        "pressure", f"RTX 4090, the same start beside {seeds.PRESSURE:,} MiB of others", derived, assumed
    )
    report.limits["the card"] = seeds.RTX_4090
    rows: tuple[tuple[Strategy, int, str | None, str], ...] = (
        (Strategy.APART, seeds.LEAST_LOST, "out of memory", "the draft's reservation is refused"),
        (Strategy.COUNTED, seeds.LEAST_LOST, "starts", "the draft needs nothing of its own (S7)"),
        (Strategy.PAIR, seeds.LEAST_LOST, None, "not in the document; the other design starts too"),
        (Strategy.APART, 0, None, "on a card with nothing else on it, which the document's cannot have been"),
        (Strategy.COUNTED, seeds.MOST_LOST, None, "the most that may be lost"),
    )
    for strategy, lost, stated, why in rows:
        run, last = start(library, strategy, seeds.PRESSURE + lost)
        with run:
            outcome = "starts" if last.status == Status.DONE else "out of memory"
        report.figures.append(Figure(f"{NAMES[strategy]}, {lost:,} MiB lost", stated, outcome, "", why))
        if stated is not None:
            report.curves.append(_named(run, strategy))
    return report


def _named(run: Run, strategy: Strategy) -> Curve:
    curve = run.curves[0]
    curve.name, curve.panel = NAMES[strategy], "RTX 4090"
    return curve


SCENARIOS: dict[str, Callable[[], Report]] = {"peak": peak, "pressure": pressure}
