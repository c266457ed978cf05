"""Which allocators use the same buffers, from operations, statuses and what is observed."""

from __future__ import annotations

from ..model.records import MAX_LANES, Kind, Observation, Op, Setup, Status

DRAFT = MAX_LANES  #: the allocator of the draft's lane 0, which borrows from allocator 0


class Sharers:
    """Who borrows from whom, and which config each allocator has; told of every operation in turn."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.owner: dict[int, int] = {}  # by borrower
        self.behind: set[int] = set()  # borrowers whose owner was remade: they have its old buffers (R14)
        self.config: dict[int, int] = {}
        for number, context in enumerate(setup.contexts):
            for lane in range(context.lanes if context.config >= 0 else 0):
                self.config[number * MAX_LANES + lane] = context.config

    def note(self, op: Op, obs: Observation) -> None:
        """What an operation that ended so changes."""
        done = obs.status == Status.DONE
        if op.kind in (Kind.RESERVE, Kind.ALLOC) and (obs.allocations or (done and op.kind == Kind.RESERVE)):
            self.behind.discard(op.alloc)
        if op.kind >= Kind.CTX_OPEN:
            if obs.attached:
                self.owner[DRAFT] = 0
            else:
                self.owner.pop(DRAFT, None)
        elif not done:
            return
        elif op.kind == Kind.NEW:
            self.config[op.alloc] = op.other
        elif op.kind == Kind.BORROW:
            self.owner[op.alloc] = op.other
        elif op.kind == Kind.FREE:
            self.owner = {b: o for b, o in self.owner.items() if op.alloc not in (b, o)}
            self.behind.discard(op.alloc)
        elif op.kind == Kind.REMAKE:
            self.behind |= {b for b, o in self.owner.items() if o == op.alloc}

    def slots(self, number: int) -> tuple[int, ...]:
        """The types of an allocator's slots."""
        return self.setup.configs[self.config.get(number, 0)]

    def groups(self, kind: int, shown: dict[int, Observation]) -> list[tuple[int, ...]]:
        """The living allocators that have buffers of a type, those of the same buffers together, owners first."""
        groups: dict[int, list[int]] = {}
        for number in sorted(shown, key=lambda n: (n in self.owner, n)):
            if not any(row(shown[number], kind)):
                continue
            owner = self.owner.get(number)
            same = owner is not None and owner in groups and self.same(kind, shown[owner], shown[number])
            if same and owner is not None and number not in self.behind:
                groups[owner].append(number)
            else:
                groups[number] = [number]
        return [tuple(group) for group in groups.values()]

    def same(self, kind: int, owner: Observation, borrower: Observation) -> bool:
        """Whether both have one set of buffers of a type: one of them owns none of its bytes (R13)."""
        own = [o.owned[kind] if kind < len(o.owned) else 0 for o in (owner, borrower)]
        return row(owner, kind) == row(borrower, kind) and not all(own)


def row(obs: Observation, kind: int) -> tuple[int, ...]:
    """Bytes asked for, chunk by chunk, of a type."""
    return obs.asked[kind] if kind < len(obs.asked) else ()
