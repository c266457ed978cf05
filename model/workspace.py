"""W: what a context reserves for, when it becomes smaller, when it waits, when it reserves again.

The whole policy, over a domain (see domain.py): the executable reference, and what is proven.
`Policy` decides for one context: the need of a batch (W1), the reservation of each lane (W2, W3),
the cells of each part of the memory (W7). `Pair` decides between the two contexts: who waits (W4),
when a reservation is no longer good (W5), what attaching answers (W6). Tokens and cells are counts.
Exact behaviour: docs/choices.md, "The workspace policy" and "Contexts"; formulas: docs/workspace.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .domain import Tree, Value
from .records import Context, Memory, Option, Status, has

PATIENCE = 64  #: calls in a row that need less, until a reservation becomes smaller (W2)
WIDE = 64  #: tokens from which on a batch runs on both lanes (W3)
STEPS = (1, 2, 4, 8)  #: eighths of the cache that are reserved for (W1)


class Need(NamedTuple):
    """What a batch needs, or a lane is reserved for: tokens, and cells of the cache."""

    tokens: Value
    cells: Value


NOTHING = Need(0, 0)


class Lane(NamedTuple):
    """One lane: what it is reserved for, and the calls in a row that needed less."""

    reserved: Need
    peak: Need  # the largest need of those calls; of no meaning where there are none
    fewer: Value  # how many they are


class Frame(NamedTuple):
    """What the policy knows of a context; see records.Context."""

    memory: Value  # records.Memory
    phase: Value  # PHASE_AWARE
    live: Value  # LIVE_CONTEXT
    two: Value  # it has two lanes
    eighth: Value  # cells: one eighth of the cache
    window: Value  # cells of the sliding window
    generation: Value  # tokens of a generation batch
    batch: Value  # tokens of a micro-batch


class Parts(NamedTuple):
    """Cells of each part of the memory (W7)."""

    attention: Value
    window: Value
    indexer: Value


def frame(c: Context) -> Frame:
    """The frame of a context over plain ints."""
    phase, live = (has(c.options, o) for o in (Option.PHASE_AWARE, Option.LIVE_CONTEXT))
    return Frame(int(c.memory), phase, live, c.lanes == 2, c.cells // 8, c.window, c.generation, c.batch)


def halves(tokens: int) -> tuple[int, int]:
    """W3: tokens that lane 0 and lane 1 compute of a batch that runs on both."""
    return tokens - tokens // 2, tokens // 2


class Policy:
    """What one context reserves for."""

    def __init__(self, d: Any) -> None:
        self.d = d

    def lawful(self, c: Frame, tokens: Value, used: Value) -> Value:
        """A batch that the context can take; anything else is misuse."""
        return self.d.all(tokens >= 1, tokens <= c.batch, used >= 0, used <= 8 * c.eighth)

    # -- W1: the need of a batch ---------------------------------------------------------

    def tokens(self, c: Frame, tokens: Value) -> Value:
        """The generation size until a prompt comes, then the micro-batch."""
        small = self.d.all(c.phase, tokens <= c.generation)
        return self.d.ite(small, c.generation, c.batch)

    def cells(self, c: Frame, used: Value) -> Value:
        """The least power-of-two step that holds the used cells; all of them where that is not bounded (W7)."""
        step = STEPS[-1] * c.eighth
        for k in reversed(STEPS[:-1]):
            step = self.d.ite(used <= k * c.eighth, k * c.eighth, step)
        return self.d.ite(self.bounded(c), step, STEPS[-1] * c.eighth)

    def bounded(self, c: Frame) -> Value:
        return self.d.all(c.live, c.memory != int(Memory.OTHER_MEMORY))

    def need(self, c: Frame, tokens: Value, used: Value) -> Need:
        return Need(self.tokens(c, tokens), self.cells(c, used))

    # -- W2: grow at once, shrink late -----------------------------------------------------

    def follow(self, lane: Lane, need: Need) -> Lane:
        """The lane after a call with this need."""
        d, r = self.d, lane.reserved
        above = d.any(need.tokens > r.tokens, need.cells > r.cells)
        below = d.any(need.tokens < r.tokens, need.cells < r.cells)
        peak = self.larger(lane.peak, need, lane.fewer > 0)
        counts = d.all(below, d.inv(above))
        fewer = d.ite(counts, lane.fewer + 1, 0)
        late = fewer == self.patience()
        grown = Need(d.max(r.tokens, need.tokens), d.max(r.cells, need.cells))
        reserved = d.ite(above, grown, d.ite(late, peak, r))
        return Lane(reserved, d.ite(counts, peak, lane.peak), d.ite(late, 0, fewer))

    def patience(self) -> int:
        return PATIENCE

    def larger(self, peak: Need, need: Need, counts: Value) -> Need:
        """The larger of both in each component; the need alone where `peak` counts for nothing yet."""
        d = self.d
        both = Need(d.max(peak.tokens, need.tokens), d.max(peak.cells, need.cells))
        out: Need = d.ite(counts, both, need)
        return out

    # -- W3: lanes ---------------------------------------------------------------------------

    def runs(self, c: Frame, tokens: Value) -> Tree:
        """[lane]: the lane computes a part of a batch of so many tokens."""
        return (True, self.d.all(c.two, tokens >= WIDE))

    def start(self, c: Frame) -> Lane:
        """What opening a context reserves: a batch of one token in an empty cache."""
        return Lane(self.need(c, 1, 0), NOTHING, 0)

    def decode(self, c: Frame, lanes: Tree, tokens: Value, used: Value) -> Tree:
        """[lane] after a batch: those that run follow its need, each from its own state."""
        need = self.need(c, tokens, used)
        return tuple(
            self.d.ite(runs, self.follow(lane, need), lane)
            for lane, runs in zip(lanes, self.runs(c, tokens), strict=True)
        )

    def failed(self, lane: Lane) -> Lane:
        """A reservation failed: nothing is reserved, so that the next call reserves again."""
        return Lane(NOTHING, NOTHING, 0)

    # -- W7: the parts of the memory -----------------------------------------------------------

    def parts(self, c: Frame, cells: Value) -> Parts:
        """Cells of each part when so many of the cache are reserved for, or in use."""
        d = self.d
        windowed = d.any(c.memory == int(Memory.KV_WINDOW), c.memory == int(Memory.HYBRID_WINDOW))
        most = c.window + c.batch
        window = d.ite(windowed, d.ite(cells < most, cells, most), 0)
        return Parts(cells, window, d.ite(c.memory == int(Memory.HYBRID_INDEXER), cells, 0))


class Pair:
    """What happens between the target and the draft. Every argument is a fact about the present."""

    def __init__(self, d: Any) -> None:
        self.d = d

    def waits(self, attached: Value, other_busy: Value) -> Value:
        """W4: before it allocates, sets inputs, computes or reserves."""
        return self.d.all(attached, other_busy)

    def reserves(self, changed: Value, due: Value, outdated: Value, unchecked: Value) -> Value:
        """W2, C3, W5: the reservation changed, a larger scheduler is due, or a reading is another than after
        the lane's last reservation (`unchecked`: that is not looked at, which is R12's counter-test)."""
        return self.d.any(changed, due, self.d.all(outdated, self.d.inv(unchecked)))

    def attach(self, present: Value, attached: Value, places: Value, fails: Value) -> Value:
        """W6: what attaching answers; a records.Status. `present`: both contexts are open. `places`: the
        placement matches, and both may share. `fails`: the draft's reservation fails."""
        d = self.d
        tried = d.ite(fails, int(Status.FAILED), int(Status.DONE))
        answer = d.ite(places, tried, int(Status.REFUSED))
        return d.ite(d.all(present, d.inv(attached)), answer, int(Status.MISUSE))
