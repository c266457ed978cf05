"""W8 between histories: a trace of contexts, run again with other options and under other strategies.

Every batch that both runs compute has the same digest: what is reserved, shared and waited for makes no
difference to outputs. And without options contexts are what plain schedulers are: a trace that opens,
decodes and closes is translated to plain operations, which must show the same digests, and the same
bytes in use once a context is open; no batch changes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ..model import oracle
from ..model.domain import Ints
from ..model.records import (
    MAX_LANES,
    UNLIMITED,
    Cap,
    Graph,
    Kind,
    Op,
    OpFlag,
    Option,
    PoolKind,
    Setup,
    Status,
    Strategy,
    Trace,
    has,
)
from ..model.template import scaled
from ..model.workspace import Frame, Policy, frame, halves
from ..native.worker import Run
from .verdict import Verdict

OFTEN, LONG = 40, 8  #: traces of at most so many operations always, of longer ones one in so many

_OPTIONS = (Option(0), Option.PHASE_AWARE, Option.PHASE_AWARE | Option.LIVE_CONTEXT)


def concerns(trace: Trace, caps: Cap) -> bool:
    """Whether the trace is to be run otherwise too."""
    if not caps & Cap.CONTEXTS or all(c.config < 0 for c in trace.setup.contexts):
        return False
    unchecked = any(has(op.flags, OpFlag.UNCHECKED) for op in trace.ops)
    return not unchecked and (len(trace.ops) <= OFTEN or len(trace.ops) % LONG == 0)


def variants(trace: Trace, caps: Cap) -> Iterator[tuple[str, Trace]]:
    """The trace with other options, and under the other strategies."""
    setup = trace.setup
    for options in _OPTIONS:
        contexts = tuple(replace(c, options=options) for c in setup.contexts)
        if contexts != setup.contexts:
            words = " and ".join(o.name.lower() for o in Option if o & options) or "without options"  # type: ignore[union-attr]
            yield words, replace(trace, setup=replace(setup, contexts=contexts))
    for strategy in Strategy if caps & Cap.COUNTED else ():
        if strategy != setup.strategy:
            yield strategy.name.lower(), replace(trace, setup=replace(setup, strategy=strategy))


def compare(
    trace: Trace, mine: Run, run: Callable[[Trace], Run], caps: Cap, steps: int
) -> tuple[list[Verdict], Counter[str]]:
    """What the first `steps` operations of a trace break beside its variants, and how often W8 was exercised."""
    found: list[Verdict] = []
    tally: Counter[str] = Counter()
    every = list(variants(trace, caps))
    for words, other in (every[len(trace.ops) % len(every)], every[0]):
        for at, message in outputs(trace, mine, run(other), steps, tally):
            found.append(Verdict("broken", "W8", f"{words}: {message}", at, trace.ops[at].kind.name))
            break
    if all(not c.options for c in trace.setup.contexts):
        for at, message in plainly(trace, run, tally):
            found.append(Verdict("broken", "W8", message, min(at, steps), trace.ops[at].kind.name))
            break
    return found, tally


def outputs(
    trace: Trace, mine: Run, other: Run, steps: int, tally: Counter[str]
) -> Iterator[tuple[int, str]]:
    """Batches that both computed, of which the digests differ."""
    slots = True  # what slots have in use is the same
    pairs = zip(trace.ops[:steps], mine.steps, other.steps, strict=False)
    for at, (op, a, b) in enumerate(pairs):
        if op.kind in (Kind.SLOT_STEP, Kind.CTX_OPEN) and a.obs.status != b.obs.status:
            slots = False
        batch = op.kind == Kind.CTX_DECODE and not has(op.flags, OpFlag.ASYNC)
        if not (batch or (op.kind == Kind.SLOT_STEP and slots)):
            continue
        if a.obs.status == b.obs.status == Status.DONE and not (a.obs.trouble or b.obs.trouble):
            tally["W8"] += 1
            if a.obs.digest != b.obs.digest:
                yield at, f"the batch's digest is {b.obs.digest:#x}, not {a.obs.digest:#x}"


# -- plain schedulers ------------------------------------------------------------------------------


@dataclass
class Plain:
    """A trace of contexts as plain operations of schedulers. `at[k]`: the plain operations of operation k."""

    setup: Setup
    templates: tuple[Graph, ...]
    graphs: list[Graph] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    at: list[tuple[int, ...]] = field(default_factory=list)
    numbers: dict[Graph, int] = field(default_factory=dict)

    def number(self, c: int, tokens: int, cells: int) -> int:
        """The graph of a batch of context c."""
        made = self.setup.contexts[c]
        parts = Policy(Ints).parts(self.frame(c), cells)
        graph = scaled(self.templates[made.graph], tokens, parts)
        if graph not in self.numbers:
            self.numbers[graph] = len(self.graphs)
            self.graphs.append(graph)
        return self.numbers[graph]

    def frame(self, c: int) -> Frame:
        return frame(self.setup.contexts[c])

    def add(self, *ops: Op) -> None:
        start = len(self.ops)
        self.ops += ops
        self.at.append(tuple(range(start, len(self.ops))))

    def trace(self) -> Trace:
        return Trace(replace(self.setup, contexts=()), tuple(self.graphs), tuple(self.ops))


def calm(trace: Trace) -> Trace:
    """Its openings, batches and closings, on devices without limit, and nothing that fails."""
    kinds = (Kind.CTX_OPEN, Kind.CTX_DECODE, Kind.CTX_CLOSE)
    types = tuple(replace(t, capacity=UNLIMITED) for t in trace.setup.types)
    ops = tuple(replace(op, fail_nth=0, fail_types=0) for op in trace.ops if op.kind in kinds)
    return Trace(replace(trace.setup, types=types, pool=PoolKind.NO_POOL, pool_range=0), trace.graphs, ops)


def plain(trace: Trace) -> Plain:
    """The same by hand: lane by lane a scheduler, reserved for everything once."""
    out = Plain(trace.setup, trace.graphs)
    for op in trace.ops:
        c = trace.setup.contexts[op.alloc] if op.alloc < len(trace.setup.contexts) else None
        if c is None or c.config < 0:
            out.add()
            continue
        numbers = [op.alloc * MAX_LANES + lane for lane in range(c.lanes)]
        if op.kind == Kind.CTX_OPEN:
            whole = out.number(op.alloc, c.batch, c.cells)
            out.add(*(x for n in numbers for x in (Op(Kind.NEW, n, c.config, flags=OpFlag.BY_SCHED),
                                                   Op(Kind.RESERVE, n, graph=whole))))  # fmt: skip
        elif op.kind == Kind.CTX_CLOSE:
            out.add(*(Op(Kind.FREE, n) for n in numbers))
        else:
            both = Policy(Ints).runs(out.frame(op.alloc), op.value)[1]
            shares = halves(op.value) if both else (op.value,)
            flags = OpFlag(int(op.flags) & int(OpFlag.ASYNC))
            ops: list[Op] = []
            for n, tokens in zip(numbers, shares, strict=False):
                graph = out.number(op.alloc, tokens, op.other)
                ops += [Op(Kind.ALLOC, n, graph=graph), Op(Kind.COMPUTE, n, graph=graph, flags=flags)]
            out.add(*ops)
    return out


def plainly(trace: Trace, run: Callable[[Trace], Run], tally: Counter[str]) -> Iterator[tuple[int, str]]:
    """Where contexts without options are not what plain schedulers are."""
    kinds = (Kind.CTX_OPEN, Kind.CTX_DECODE, Kind.CTX_CLOSE)
    places = [k for k, op in enumerate(trace.ops) if op.kind in kinds]
    quiet = calm(trace)
    mine = run(quiet)
    done = [s.obs.status == Status.DONE for s in mine.steps]
    kept = [k for k, good in enumerate(done) if good]
    hand = plain(replace(quiet, ops=tuple(quiet.ops[k] for k in kept)))
    other = run(hand.trace())
    for k, its in zip(kept, hand.at, strict=True):
        op, obs = quiet.ops[k], mine.steps[k].obs
        if not its or its[-1] >= len(other.steps):
            return
        tally["W8"] += 1
        last = other.steps[its[-1]].obs
        if op.kind == Kind.CTX_OPEN and k == kept[0] and obs.used != last.used:
            yield places[k], f"{obs.used} bytes in use once it is open, plain schedulers have {last.used}"
        if op.kind == Kind.CTX_DECODE and mine.steps[k - 1].obs.used != obs.used:
            yield places[k], "a batch changed the bytes in use, without options"
        digests = [other.steps[i].obs.digest for i in its if hand.ops[i].kind == Kind.COMPUTE]
        want = digests[0] if len(digests) == 1 else oracle.both(*digests) if digests else 0
        if op.kind == Kind.CTX_DECODE and not has(op.flags, OpFlag.ASYNC) and obs.digest != want:
            yield places[k], f"the digest is {obs.digest:#x}, by plain schedulers it is {want:#x}"
