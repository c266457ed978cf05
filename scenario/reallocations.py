"""The second document: what reallocating costs, with and without hysteresis.

Without it is the policy's first version: it starts at 256 cells, doubles them as they fill, and shrinks at once.
It is not in the subject, so its reservations are made here, one by one, by an owner of the subject. With it is the
subject's own policy (W1, W2), on the same sizes.
"""

from __future__ import annotations

from collections.abc import Callable

from ..model.records import Cap, Graph, Kind, Op, Option, Scale, Tensor
from . import seeds
from .device import Run, subject
from .report import Figure, Report
from .two_cards import DRAFT, NEEDS, TARGET, batches, load, prompt, setup, template

OWNER = 0
PROMPT, SHORT, LONG = 10_000, 20, 300  #: tokens
GENERATION = 1  #: tokens of a generation batch
DERIVED = (
    f"The sizes of the two-card rows: {seeds.TOKEN_BYTES:,} bytes a token, {seeds.ATTENTION_BYTES} bytes a token and cell.",
    "A reservation that fits the pages a buffer has replaces nothing (G1): of the six doublings from 256 to 16,384"
    " cells the first two need less than what is left of a 2 MiB page.",
)
ASSUMED = (
    f"Each reallocation takes {seeds.MILLISECONDS} ms, as stated: the simulated driver has no such cost.",
    f"A 10k prompt runs at {seeds.PROMPT_SPEED} tokens a second, as stated.",
)


def sized(tokens: int, cells: int) -> Graph:
    """The target's graph for a batch."""
    times = {Scale.SCALE_NONE: 1, Scale.SCALE_TOKENS: tokens, Scale.SCALE_ATTENTION: tokens * cells}
    plain = template(seeds.TOKEN_BYTES, seeds.ATTENTION_BYTES)
    return Graph(tuple(Tensor(t.size * times[t.scale], t.src, t.flags) for t in plain.tensors))


class First:
    """The policy's first version: what it reserves, when."""

    def __init__(self) -> None:
        steps = [seeds.START_CELLS << n for n in range(10)]
        self.needs = [(n, cells) for n in (GENERATION, seeds.MICRO_BATCH) for cells in steps]
        self.run = Run(subject(Cap.META), setup(Option(0)), [sized(*x) for x in self.needs], seeds.CARDS)
        self.run.must("make the target's allocator", Op(Kind.NEW, OWNER))
        self.run.must("let it shrink", Op(Kind.OWN, OWNER))
        self.reserved = self.needs[0]
        self.reserve(*self.needs[0])

    def reserve(self, tokens: int, used: int) -> bool:
        """Reserves what this batch needs; whether buffers were allocated."""
        n = GENERATION if tokens <= GENERATION else seeds.MICRO_BATCH
        cells = next(c for _, c in self.needs if c >= used)
        if (n, cells) < self.reserved:
            self.run.must("request a shrink", Op(Kind.SHRINK, OWNER))
        self.reserved = (n, cells)
        at = self.needs.index(self.reserved)
        words = f"reserve for {n} tokens, {cells:,} cells"
        return self.run.must(words, Op(Kind.RESERVE, OWNER, graph=at)).allocations > 0

    def prompt(self, tokens: int) -> int:
        """Reallocations of a prompt, without that of its first batch."""
        made = [self.reserve(n, used) for n, used in batches(tokens, least=seeds.START_CELLS)]
        return sum(made[1:])


def generate(run: Run, tokens: int, used: int) -> int:
    """So many tokens one by one, by target and draft; the times that buffers were allocated."""
    found = 0
    for n in range(tokens):
        for who in (TARGET, DRAFT):
            seen = run.must("generate", Op(Kind.CTX_DECODE, who, used + n + 1, value=1))
            found += seen.allocations > 0
    return found


def reallocations() -> Report:
    report = Report(
        "reallocations", "Reallocations of a 10k prompt, with and without hysteresis", DERIVED, ASSUMED
    )
    first = First()
    with first.run:
        within = first.prompt(PROMPT)
        around = first.reserve(GENERATION, PROMPT + 1) + first.reserve(seeds.MICRO_BATCH, PROMPT + SHORT)
    with load(subject(NEEDS), seeds.BOTH) as run:
        start = prompt(run, PROMPT)
        quiet = generate(run, SHORT, PROMPT) + prompt(run, PROMPT)
        shrinks = generate(run, LONG, PROMPT)
        grows = prompt(run, PROMPT)
    share = 100 * within * seeds.MILLISECONDS / 1000 / (PROMPT / seeds.PROMPT_SPEED)
    report.figures += [
        Figure("without: while a 10k prompt runs, from 256 cells", seeds.STATED_REALLOCATIONS, within, "times",
               "doublings that do not fit the last page of the buffer"),
        Figure("without: the time of these, of a 10k prompt", seeds.SLOWER, round(share, 1), "%",
               f"{within} x {seeds.MILLISECONDS} ms; with the growth of the first batch it were"
               f" {share * (within + 1) / within:.1f} %"),
        Figure("without: a short generation, then a prompt", 2, int(around), "times", "shrinks, then grows"),
        Figure("with: while a 10k prompt runs", 0, start - 1, "times",
               "starts at one eighth of the cache; only the first batch grows from 1 token to 256"),
        Figure("with: a short generation, then a prompt", 0, quiet, "times", "fewer than 64 calls needed less"),
        Figure(f"with: a generation of {LONG}, then a prompt", None, shrinks + grows, "times",
               "after 64 calls it shrinks once (W2, R6), and the prompt grows once"),
    ]  # fmt: skip
    report.curves += [first.run.curves[0], run.curves[0]]
    names = ("without hysteresis: the target's buffers alone", "with hysteresis: all of the card")
    for curve, name in zip(report.curves, names, strict=True):
        curve.name, curve.panel = name, f"{seeds.CARDS[0]}, {name}"
    return report


SCENARIOS: dict[str, Callable[[], Report]] = {"reallocations": reallocations}
