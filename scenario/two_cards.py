"""The second document: an RTX 4070 and an RTX 3060 as one meta type, a target and its MTP draft as contexts.

Three settings: both options off, phase-aware (the draft then shares the target's buffers), both options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ..model.records import (
    BufferType,
    Cap,
    Context,
    Flag,
    Graph,
    Kind,
    Op,
    Option,
    Scale,
    Setup,
    Tensor,
)
from ..native.binding import Library
from . import seeds
from .device import PAGE, Run, card, one_tensor, subject
from .report import MIB, Curve, Figure, Report

NEEDS = Cap.CONTEXTS | Cap.META
OPTIONS = {
    seeds.OFF: Option(0),
    seeds.PHASE: Option.PHASE_AWARE,
    seeds.BOTH: Option.PHASE_AWARE | Option.LIVE_CONTEXT,
}
SIZES = (seeds.RTX_4070, seeds.RTX_3060)
TARGET, DRAFT = 0, 1
META, FIRST = 0, 1  #: configs: the meta type, then each card alone
HOLDERS = (
    1,
    3,
)  #: allocators that stand for all that is no compute buffer; contexts of one lane have 0 and 2
DERIVED = (
    f"The attention part of the target's buffers is {seeds.ATTENTION} MiB for the whole cache ({seeds.ATTENTION_BYTES}"
    f" bytes a token and cell): 1k with both options is 112 MiB lower, seven eighths of it.",
    f"The target needs {seeds.LESS_TOKENS} MiB less for 1 token than for {seeds.MICRO_BATCH}: 324 MiB less after load,"
    f" less the draft's {seeds.DRAFT}.",
    f"The draft's buffers are {seeds.DRAFT} MiB, as stated; they are gone where it shares (R3: the larger of the two).",
)
ASSUMED = (
    "All else that grows (pools, captured graphs, the driver) is not explained in the document: it is taken from the"
    " column without options and put into the others.",
    f"A slot's cache has {seeds.CELLS:,} cells, and both lanes count as one: the figures do not tell them apart.",
    "Prompts are driven at their first batch, at every batch that needs more cells than the one before was reserved"
    " for, and at the last: a batch between them needs no more than what is reserved (W2).",
)


def template(token_bytes: int, cell_bytes: int) -> Graph:
    """A context's graph: `token_bytes` of each token, `cell_bytes` of each token and cell, alive together."""
    tensors = [
        Tensor(4096, (), Flag.LEAF | Flag.INPUT),
        Tensor(token_bytes, (0,), scale=Scale.SCALE_TOKENS),
    ]
    if cell_bytes:
        tensors.append(Tensor(cell_bytes, (1,), scale=Scale.SCALE_ATTENTION))
    tensors.append(Tensor(4096, tuple(range(1, len(tensors))), Flag.OUTPUT))
    return Graph(tuple(tensors))


def others(d: int, grown: str = "after load") -> tuple[int, int]:
    """MiB on card d that are no compute buffer, in whole pages and the rest: what the column without options
    leaves."""
    mib = seeds.STATED[grown][seeds.OFF][d] - pages(seeds.TARGET) - pages(seeds.DRAFT)
    return mib - mib % (PAGE // MIB), mib % (PAGE // MIB)


def pages(mib: float) -> int:
    """MiB that a buffer of `mib` MiB takes: whole pages."""
    return -int(-mib * MIB // PAGE) * PAGE // MIB


def setup(options: Option) -> Setup:
    contexts = tuple(
        Context(META, graph, options=options, cells=seeds.CELLS, batch=seeds.MICRO_BATCH)
        for graph in (TARGET, DRAFT)
    )
    both = BufferType(alignment=256, granularity=PAGE, meta=0b11)
    types = (*map(card, SIZES), both)
    return Setup(types, ((2,), (0,), (1,)), contexts=contexts)


def load(library: Library, setting: str) -> Run:
    """Everything after load: weights and cache, both contexts; the draft is attached where the options allow it."""
    growths = ("after load", *seeds.TOKENS)
    graphs = [template(seeds.TOKEN_BYTES, seeds.ATTENTION_BYTES), template(seeds.DRAFT_BYTES, 0)]
    graphs += [one_tensor(others(d, g)[0]) for g in growths for d in range(len(SIZES))]
    run = Run(
        library, setup(OPTIONS[setting]), graphs, seeds.CARDS, [others(d)[1] for d in range(len(SIZES))]
    )
    for d, alloc in enumerate(HOLDERS):
        run.must("make the allocator of weights and cache", Op(Kind.NEW, alloc, FIRST + d))
    hold(run, "after load")
    run.must("open the target", Op(Kind.CTX_OPEN, TARGET))
    run.must("open the draft", Op(Kind.CTX_OPEN, DRAFT))
    if OPTIONS[setting]:
        run.must("attach the draft", Op(Kind.CTX_ATTACH, DRAFT))
    run.forget_peak()
    return run


def hold(run: Run, grown: str) -> None:
    """What is no compute buffer has grown to what it is then."""
    at = 2 + ("after load", *seeds.TOKENS).index(grown) * len(SIZES)
    for d, alloc in enumerate(HOLDERS):
        run.must("hold weights, cache and all else", Op(Kind.RESERVE, alloc, graph=at + d))


def batches(tokens: int, cells: int = seeds.CELLS, least: int | None = None) -> Iterator[tuple[int, int]]:
    """(tokens, cells in use) of the batches of a prompt at which the need of cells may change: powers of two
    from `least` (one eighth of the cache)."""
    room = 0
    for done in range(0, tokens, seeds.MICRO_BATCH):
        n = min(seeds.MICRO_BATCH, tokens - done)
        used, last = done + n, done + n == tokens
        if used > room or last:
            room = max(room, least or cells // 8)
            while room < used:
                room *= 2
            yield n, used


def prompt(run: Run, tokens: int) -> int:
    """A prompt by target and draft, then a token of each; the number of times that buffers were allocated."""
    allocations = 0
    for n, used in [*batches(tokens), (1, tokens + 1)]:
        for who, name in ((TARGET, "target"), (DRAFT, "draft")):
            words = f"decode with the {name} ({used:,} cells)"
            seen = run.must(words, Op(Kind.CTX_DECODE, who, used, value=n))
            allocations += seen.allocations > 0
    return allocations


def after_load() -> Report:
    report = Report("after-load", "RTX 4070 / RTX 3060, after load", DERIVED, ASSUMED[:2])
    why = {seeds.OFF: "met by construction: the baseline is what is left of it",
           seeds.PHASE: "buffers for a generation batch, the draft's are shared (W1, W6); the first card's figure is used"
           " for the sizes, the second's is met by itself",
           seeds.BOTH: "one token needs half a MiB of attention at most, which is not seen in whole pages"}  # fmt: skip
    for setting in OPTIONS:
        with load(subject(NEEDS), setting) as run:
            add(report, run, "after load", setting, [run.now(d) for d in range(len(SIZES))], why[setting])
    return report


def prompts(length: str) -> Report:
    """The peak of a prompt of this length, in each setting."""
    report = Report(
        f"prompt-{length}", f"RTX 4070 / RTX 3060, peak of a prompt of {length} tokens", DERIVED, ASSUMED
    )
    for setting in OPTIONS:
        with load(subject(NEEDS), setting) as run:
            hold(run, length)
            prompt(run, seeds.TOKENS[length])
            add(report, run, length, setting, run.peak, reason(length, setting))
    return report


def reason(length: str, setting: str) -> str:
    """One line on what to make of the difference."""
    if setting == seeds.OFF:
        return "met by construction: this column is what the others are compared with"
    if (length, setting) == ("95k", seeds.BOTH):
        return "95k cells need the whole cache, so both save what sharing saves; most likely the driver keeps the rest"
    if length == "1k":
        return (
            "the document says 106 saved at every length, its table 100 here: what the 6 are can't be derived"
        )
    if setting == seeds.BOTH:
        return "10k cells fit into one eighth of the cache, as 1k do; see phase-aware for the 2 MiB"
    if length == "10k":
        return "the draft's 106 MiB are shared; the second card's figures differ by 108 here, by 106 at 95k"
    return "the draft's 106 MiB are shared, and nothing else differs"


def add(report: Report, run: Run, row: str, setting: str, found: list[float], why: str) -> None:
    for d, name in enumerate(seeds.CARDS):
        report.figures.append(Figure(f"{name}, {setting}", seeds.STATED[row][setting][d], found[d], why=why))
        curve: Curve = run.curves[d]
        curve.name, curve.panel = setting, name
        report.curves.append(curve)


SCENARIOS: dict[str, Callable[[], Report]] = {
    "after-load": after_load,
    **{f"prompt-{length}": partial(prompts, length) for length in seeds.TOKENS},
}
