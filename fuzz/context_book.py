"""W: what is known of one context: what was seen of it, and history that follows from operations and statuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..model.domain import Ints
from ..model.records import MAX_LANES, Context, Graph, Kind, Memory, Observation, Op, Status
from ..model.template import scaled
from ..model.workspace import NOTHING, Frame, Lane, Need, Parts, Policy, frame, halves
from ..spec import workspace
from ..spec.workspace import Calls, PolicyOp, Seen

_NO_CALLS = Calls(0, NOTHING, False)


@dataclass
class Book:
    """One context. Lists are [lane]."""

    made: Context
    template: Graph
    open: bool = False
    able: bool = True  # lane 0 has a scheduler (W6)
    shared: bool = False  # lane 0 shared buffers since it was opened
    sure: bool = True  # what is reserved was seen, or follows from what was seen
    reserved: list[Need] = field(default_factory=lambda: [NOTHING] * MAX_LANES)
    fewer: list[int] = field(default_factory=lambda: [0] * MAX_LANES)
    calls: list[Calls] = field(default_factory=lambda: [_NO_CALLS] * MAX_LANES)
    reading: list[int] = field(
        default_factory=lambda: [0] * MAX_LANES
    )  # both readings of its allocator added
    known: list[int] = field(default_factory=lambda: [0] * MAX_LANES)  # the same after its last reservation
    vague: bool = False  # lane 0's may be older than `known` says: what happened between is not seen
    busy: list[bool] = field(default_factory=lambda: [False] * MAX_LANES)
    asked: list[tuple[tuple[int, ...], ...]] = field(default_factory=lambda: [()] * MAX_LANES)
    had: list[tuple[tuple[int, ...], ...]] = field(
        default_factory=lambda: [()] * MAX_LANES
    )  # `asked` one step before
    nodes: list[int] = field(default_factory=lambda: [0] * MAX_LANES)  # that the lane's scheduler is made for
    wanted: int = 0  # tensors that its graphs may have
    again: int = 0  # reservations that the last batch had to make whatever it needs
    second: bool = False  # lane 1 had to make one, for whatever reason
    bound: tuple[int, int] | None = None  # tokens and cells that lane 0's graph is for
    bound_at: int = 0  # the generation then
    generation: int = 0  # that lane 0 reads

    def __post_init__(self) -> None:
        self.frame: Frame = frame(self.made)

    def seen(self) -> Seen:
        return Seen(self.open, tuple(self.reserved), tuple(self.fewer))

    def forced(self) -> list[bool]:
        """The lane has to reserve at its next batch, whatever that needs."""
        outdated = [r != k for r, k in zip(self.reading, self.known, strict=True)]
        return [o or self.due(lane) for lane, o in enumerate(outdated)]

    def due(self, lane: int) -> bool:
        """A larger scheduler is due (C3)."""
        return 0 < self.nodes[lane] < self.wanted

    # -- what happens ------------------------------------------------------------------------

    def opened(self) -> None:
        self.open, self.able, self.sure, self.shared, self.bound = True, True, True, False, None
        self.wanted = self.made.nodes or len(self.template.tensors)
        self.vague = False
        self.calls = [workspace.opened(Ints, g) for g in self.calls]

    def shown(self, obs: Observation) -> None:
        """What an operation of its own shows of its lanes."""
        self.reserved = [Need(t, c) for t, c in zip(obs.tokens, obs.cells, strict=True)]
        self.fewer = list(obs.fewer)

    def look(self, looks: Mapping[int, Observation], first: int) -> None:
        """What its allocators show, from number `first` on."""
        for lane in range(self.made.lanes):
            look = looks.get(first + lane)
            alive = look is not None and look.status == Status.DONE
            if lane == 0:
                self.able = alive if self.open else self.able
                self.generation = look.generation if look is not None and alive else 0
            self.had[lane], self.busy[lane], self.asked[lane] = self.asked[lane], False, ()
            if look is not None and alive:
                self.busy[lane], self.asked[lane] = bool(look.in_flight), look.asked
                self.reading[lane] = look.generation + look.shrink_generation
                self.nodes[lane] = look.nodes

    def settled(self, lanes: range) -> None:
        """These lanes have reserved, and know what they read."""
        for lane in lanes:
            self.known[lane] = self.reading[lane]
            self.vague &= lane > 0
        self.bound = None

    def decoded(self, op: Op, obs: Observation, old: list[Need], forced: list[bool]) -> None:
        """The history after a batch; `old`: what was reserved before it, `forced`: see there."""
        done = obs.status == Status.DONE
        ran = workspace.runs(Ints, self.frame, op.value)
        self.follow(op, done, old)
        self.again = sum(f for f, r in zip(forced, ran, strict=True) if r)
        self.second = ran[1] and (old[1] != self.reserved[1] or forced[1])
        if ran[1] and done:
            self.known[1] = self.reading[1]
        if obs.reserves - self.second > 0 or not self.sure:
            self.settled(range(1))
        if not done:  # which lanes got so far is not seen
            self.settled(range(MAX_LANES if ran[1] and obs.reserves else bool(obs.reserves)))
            return
        tokens = halves(op.value)[0] if ran[1] else op.value
        if self.bound != (tokens, op.other):
            self.bound, self.bound_at = (tokens, op.other), self.generation

    def follow(self, op: Op, done: bool, old: list[Need]) -> None:
        """The lanes' histories after a batch; `done`: no reservation for it failed."""
        ask = PolicyOp(Kind.CTX_DECODE, op.value, op.other)
        ran = workspace.runs(Ints, self.frame, op.value)
        for lane in range(MAX_LANES):
            failed = not done and self.reserved[lane] == NOTHING
            # lanes reserve in turn, before any computes: one that failed keeps those after it from it
            reached = done or failed or lane == 0 or self.reserved[0] != NOTHING
            here = ran[lane] and self.able and reached
            self.calls[lane] = workspace.follow(
                Ints, self.frame, self.calls[lane], old[lane], ask, here, failed
            )

    def beside(self, op: Op, old: list[Need], vague: bool) -> None:
        """The history after a batch, within a slot's step, for which no reservation failed. `vague`: what the
        other context did after it may have replaced lane 0's buffers, and may not."""
        self.follow(op, True, old)
        self.again, self.second = 0, False
        for lane, ran in enumerate(workspace.runs(Ints, self.frame, op.value)):
            self.known[lane] = self.reading[lane] if ran else self.known[lane]
        self.vague, self.bound = vague, None

    def stepped(self, tokens: int, used: int, vague: bool) -> None:
        """The history after a batch that is not seen itself; what is reserved follows the policy."""
        self.known[0], self.vague, self.bound = self.reading[0], vague, None
        c, ask = self.frame, PolicyOp(Kind.CTX_DECODE, tokens, used)
        ran = workspace.runs(Ints, c, tokens)
        lanes = tuple(
            Lane(r, g.peak, f) for r, g, f in zip(self.reserved, self.calls, self.fewer, strict=True)
        )
        after = Policy(Ints).decode(c, lanes, tokens, used)
        for lane in range(MAX_LANES):
            self.calls[lane] = workspace.follow(
                Ints, c, self.calls[lane], self.reserved[lane], ask, ran[lane], False
            )
            self.reserved[lane], self.fewer[lane] = after[lane].reserved, after[lane].fewer

    # -- graphs ------------------------------------------------------------------------------

    def parts(self, cells: int) -> Parts:
        """W7, as the contract's seeds have it (docs/workspace.md)."""
        c = self.made
        windowed = c.memory in (Memory.KV_WINDOW, Memory.HYBRID_WINDOW)
        window = min(cells, c.window + c.batch) if windowed else 0
        return Parts(cells, window, cells if c.memory == Memory.HYBRID_INDEXER else 0)

    def graph(self, tokens: int, cells: int) -> Graph:
        """The graph of a batch, or of a reservation."""
        return scaled(self.template, tokens, self.parts(cells))
