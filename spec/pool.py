"""V: the clauses of device pools, over what is seen of them, and the machine that is proved.

`Seen` holds what any subject shows and what follows from its answers alone (the blocks that a
legacy pool keeps), so a subject, the model over ints and the model in a proof are judged by the
same rules. Bytes throughout.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..model.domain import Tree, Value
from ..model.pool import ALIGNMENT, LARGEST, Model, Out, Pool, PoolOp, State
from ..model.records import Kind, PoolKind, Status
from ..model.terms import fresh
from .machine import Machine, Rules
from .step import Rule

CLAUSES = ("V1", "V2", "V3", "V4", "V5")
VMM, LEGACY = int(PoolKind.VMM_POOL), int(PoolKind.LEGACY_POOL)


class Seen(NamedTuple):
    """All pools at one moment."""

    pools: Tree  # [pool]      model.pool.Pool: range, bytes mapped and handed out, blocks kept
    pooled: Tree  # [device]   physical bytes that its pools hold
    used: Tree  # [device]     bytes in use, by anyone
    cap: Tree  # [device]
    room: Tree  # [device]     addresses of a pool's range
    due: Tree  # [pool]        bytes handed out, going by blocks that came and went alone
    unserved: Tree  # [pool]   a computation on its stream was refused since a block last came or went


def seen(model: Model, s: State) -> Seen:
    """What is seen of a model's state."""
    pooled = tuple(model.pooled(s, k) for k in model.devices)
    return Seen(s.pools, pooled, s.used, s.cap, s.room, s.due, s.unserved)


class Step:
    """One step of the pools (`model` gives their number and units), and the words of its rules."""

    def __init__(self, model: Model, s: Seen, op: PoolOp, t: Seen, out: Out) -> None:
        self.model, self.d = model, model.d
        self.s, self.op, self.t, self.out = s, op, t, out
        self.ok = out.status == int(Status.DONE)
        self.refused = out.status == int(Status.REFUSED)

    def kind(self, *kinds: Kind) -> Value:
        return self.d.any(*(self.op.kind == int(k) for k in kinds))

    def on(self, p: int) -> Value:
        """The operation names pool p."""
        return self.d.all(self.kind(Kind.POOL_ALLOC, Kind.POOL_FREE), self.op.pool == p)

    def idle_bytes(self, k: int) -> Value:
        """Bytes of the device's pools that nothing is handed out of."""
        return self.sum(k, self.d.inv)

    def kept_bytes(self, k: int) -> Value:
        """Bytes of the device's pools that are in use."""
        return self.sum(k, lambda used: used)

    def sum(self, k: int, which: Any) -> Value:
        d, mine = self.d, [p for p in self.model.pools if self.model.device(p) == k]
        pools = [self.s.pools[p] for p in mine]
        return sum(d.ite(which(x.out > 0), x.mapped, 0) for x in pools)


def rules(p: Step) -> dict[str, Rules]:
    """Every clause as its named parts."""
    found: dict[str, Rules] = {clause: {} for clause in CLAUSES}
    parts = [_one(p, i) for i in p.model.pools if p.on(i) is not False]
    parts += [_trims(p)] if p.kind(Kind.TRIM) is not False else []
    parts += [_computes(p)] if p.kind(Kind.COMPUTE) is not False else []
    for part in parts:
        for clause, named in part.items():
            found[clause] |= named
    return found


def _one(p: Step, i: int) -> dict[str, Rules]:
    """What an operation does to the one pool that it names, and to its device."""
    found = (_end if p.model.vmm else _blocks)(p, i)
    for clause, parts in _either(p, i).items():
        found[clause] |= parts
    return found


def _either(p: Step, i: int) -> dict[str, Rules]:
    """Of V2 and V5, what holds of both kinds of pool."""
    d = p.d
    a, b, k = p.s.pools[i], p.t.pools[i], p.model.device(i)
    alloc = d.all(p.on(i), p.kind(Kind.POOL_ALLOC))
    here = f"pool {i}: "
    return {
        "V2": {
            here + "a pool grows by what its device uses more": Rule(d.all(alloc, p.ok), d.all(*(
                p.t.used[j] - p.s.used[j] == (b.mapped - a.mapped if j == k else 0) for j in p.model.devices))),
        },
        "V5": {
            here + "a failed block leaves the pool as it was": Rule(d.all(alloc, p.refused), d.all(
                b.out == a.out, b.mapped == a.mapped)),
            here + "a failed block leaves the device as it was": Rule(d.all(alloc, p.refused), d.all(
                p.t.used[k] == p.s.used[k], p.t.pooled[k] == p.s.pooled[k])),
        },
    }  # fmt: skip


def _end(p: Step, i: int) -> dict[str, Rules]:
    """A VMM pool: V1, V2 and V5."""
    d, op, out = p.d, p.op, p.out
    a, b, k = p.s.pools[i], p.t.pools[i], p.model.device(i)
    alloc, free = (d.all(p.on(i), p.kind(x)) for x in (Kind.POOL_ALLOC, Kind.POOL_FREE))
    got = d.all(alloc, p.ok)
    size = d.roundup(d.max(op.size, 1), ALIGNMENT)
    unit = p.model.units[k]
    missing = d.max(a.out + size - a.mapped, 0)
    latest = d.all(a.out > 0, op.address + op.size == a.base + a.out)
    due, unserved = p.s.due[i], p.s.unserved[i]
    taken = d.all(due > 0, op.address + op.size == a.base + due)
    inside = a.out + size <= p.s.room[k]
    told = d.any(op.inject, *(op.fail_nth == op.before + n for n in (1, 2, 3)))
    full = p.s.used[k] + d.roundup(missing, unit) > p.s.cap[k]
    here = f"pool {i}: "
    return {
        "V1": {
            here + "reserved on first use": Rule(d.all(alloc, a.base == 0), b.base > 0),
            here + "the range stays where it is": Rule(d.all(p.on(i), a.base > 0), b.base == a.base),
        },
        "V2": {
            here + "a block is at the end of what is handed out": Rule(
                got, d.all(out.address == b.base + a.out, b.out == a.out + size, out.size == size)),
            here + "all that is handed out is mapped": Rule(got, b.out <= b.mapped),
            here + "mapped in whole units": Rule(got, d.roundup(b.mapped, unit) == b.mapped),
            here + "no more is mapped than is missing": Rule(
                got, b.mapped == a.mapped + d.roundup(missing, unit)),
            here + "the latest block can be freed": Rule(d.all(free, latest), d.all(
                p.ok, b.out == a.out - op.size, b.mapped == a.mapped)),
            here + "no other block can be freed": Rule(d.all(free, d.inv(latest)), d.all(
                out.status == int(Status.MISUSE), b.out == a.out, b.mapped == a.mapped)),
        },
        "V5": {
            here + "a failure is told to the caller": Rule(
                d.all(alloc, inside, missing > 0, d.any(told, full)), p.refused),
            here + "no failure without a reason": Rule(
                d.all(alloc, inside, d.any(missing == 0, d.inv(d.any(told, full)))), p.ok),
            here + "a computation without scratch leaves nothing handed out": Rule(
                d.all(got, unserved), b.out == due + size),
            here + "nor anything above the latest block": Rule(d.all(free, unserved, taken), p.ok),
        },
    }  # fmt: skip


def _blocks(p: Step, i: int) -> dict[str, Rules]:
    """A legacy pool: of V2 what has a meaning there, and V5."""
    d, op, out = p.d, p.op, p.out
    a, b, k = p.s.pools[i], p.t.pools[i], p.model.device(i)
    alloc, free = (d.all(p.on(i), p.kind(x)) for x in (Kind.POOL_ALLOC, Kind.POOL_FREE))
    need = d.roundup(d.max(op.size, 1), p.model.units[k])
    fits = [x >= need for x in a.kept]
    some, full = d.any(*fits), d.all(*(x > 0 for x in a.kept))
    told = d.any(op.inject, op.fail_nth == op.before + 1)
    beyond = d.any(need > LARGEST, p.s.used[k] + need > p.s.cap[k])
    same = d.all(
        d.any(*(d.all(f, x == out.address, y == out.size) for f, x, y in zip(fits, a.at, a.kept, strict=True))),
        *(d.any(d.inv(f), x >= out.size) for f, x in zip(fits, a.kept, strict=True)),
    )  # fmt: skip
    here = f"pool {i}: "
    return {
        "V2": {
            here + "a kept block that is large enough is used again": Rule(d.all(alloc, some), d.all(
                p.ok, out.allocations == 0, b.mapped == a.mapped, same)),
            here + "a new block is whole units": Rule(d.all(alloc, d.inv(some), p.ok), d.all(
                out.size == need, b.mapped == a.mapped + need)),
            here + "a block counts as handed out": Rule(d.all(alloc, p.ok), b.out == a.out + out.size),
            here + "a freed block is kept, up to the limit": Rule(free, d.all(p.ok, b.mapped == d.ite(
                full, a.mapped - op.size, a.mapped), b.out == a.out - op.size)),
        },
        "V5": {
            here + "a failure is told to the caller": Rule(
                d.all(alloc, d.inv(some), d.any(told, beyond)), p.refused),
            here + "no failure without a reason": Rule(
                d.all(alloc, d.inv(some), d.inv(d.any(told, beyond))), p.ok),
        },
    }  # fmt: skip


def _trims(p: Step) -> dict[str, Rules]:
    """V3 and V4, and of V1 what a trim must leave."""
    d, s, t, op = p.d, p.s, p.t, p.op
    trim = d.all(p.kind(Kind.TRIM), p.ok)
    v1: Rules = {}
    v3: Rules = {"what is reported is what was given back": Rule(trim, p.out.released == sum(
        s.pooled[k] - t.pooled[k] for k in p.model.devices))}  # fmt: skip
    v4: Rules = {}
    v5: Rules = {}
    for k in p.model.devices:
        here, reached = f"device {k}: ", op.reach[k] if op.reach else False
        hit = d.all(trim, reached)
        v3[here + "a pool in use keeps all"] = Rule(
            d.all(hit, p.kept_bytes(k) > 0), t.pooled[k] >= p.kept_bytes(k)
        )
        v3[here + "an idle pool gives all back"] = Rule(
            d.all(hit, p.idle_bytes(k) > 0), t.pooled[k] <= p.kept_bytes(k)
        )
        v3[here + "the device gets it back"] = Rule(hit, s.used[k] - t.used[k] == s.pooled[k] - t.pooled[k])
        v4[here + "reached through a meta type"] = Rule(
            d.all(hit, op.meta, p.idle_bytes(k) > 0), t.pooled[k] < s.pooled[k]
        )
        v4[here + "not reached, not touched"] = Rule(
            d.all(trim, d.inv(reached)), d.all(t.pooled[k] == s.pooled[k], t.used[k] == s.used[k])
        )
        mine = [i for i in p.model.pools if p.model.device(i) == k]
        free = d.any(*(d.all(s.unserved[i], s.due[i] == 0) for i in mine))
        kept = sum(d.ite(s.due[i] > 0, s.pools[i].mapped, 0) for i in mine)
        v5[here + "a pool whose computation found no scratch is as idle as before"] = Rule(
            d.all(hit, free), t.pooled[k] <= kept
        )
    v3["only after the devices have finished"] = Rule(trim, d.inv(p.out.early))
    for i in p.model.pools if p.model.vmm else ():
        ranged = d.all(p.kind(Kind.TRIM), s.pools[i].base > 0)
        v1[f"pool {i}: a trim gives no addresses back"] = Rule(ranged, t.pools[i].base == s.pools[i].base)
    return {"V1": v1, "V3": v3, "V4": v4, "V5": v5}


def _computes(p: Step) -> dict[str, Rules]:
    """V5, of a computation that found no scratch: what its pools got they hold, or the device has it back."""
    d, s, t = p.d, p.s, p.t
    refused = d.all(p.kind(Kind.COMPUTE), p.refused)
    return {
        "V5": {
            f"device {k}: what could not be mapped does not stay in use": Rule(
                refused, t.used[k] - t.pooled[k] == s.used[k] - s.pooled[k]
            )
            for k in p.model.devices
        }
    }


# -- the machine -----------------------------------------------------------------------


def invariants(model: Model, s: State) -> dict[str, Value]:
    """What holds in every state that can be reached."""
    d = model.d
    each = list(zip(s.pools, map(model.device, model.pools), strict=True))
    found = {
        "sizes are not negative": d.all(*(d.all(p.base >= 0, p.out >= 0, p.out <= p.mapped) for p, _ in each)),
        "the device counts its pools' bytes": d.all(
            *(s.used[k] >= model.pooled(s, k) for k in model.devices)),
        "what came and went is handed out": d.all(*(p.out == due for (p, _), due in zip(each, s.due, strict=True))),
        "mapped in whole units": d.all(*(d.roundup(p.mapped, model.units[k]) == p.mapped for p, k in each)),
    }  # fmt: skip
    if model.vmm:
        found["inside the range"] = d.all(*(p.mapped <= s.room[k] for p, k in each))
        found["no memory without a range"] = d.all(*(d.any(p.base > 0, p.mapped == 0) for p, _ in each))
        return found
    found["all that is not handed out is kept"] = d.all(*(p.mapped == p.out + sum(p.kept) for p, _ in each))
    found["kept blocks are whole units"] = d.all(
        *(d.all(x >= 0, d.roundup(x, model.units[k]) == x) for p, k in each for x in p.kept)
    )
    found["kept without gaps"] = d.all(
        *(d.any(x > 0, y == 0) for p, _ in each for x, y in zip(p.kept, p.kept[1:], strict=False))
    )
    return found


def lawful(model: Model, s: State, op: PoolOp) -> list[Value]:
    """Sizes are sizes; what is freed was handed out; a range is whole units."""
    d = model.d
    law = [op.fresh > 0, op.fail_nth >= 0, op.before >= 0, op.size >= 0]
    law += [d.roundup(r, u) == r for r, u in zip(s.room, model.units, strict=True)]
    free = op.kind == int(Kind.POOL_FREE)
    for i, pool in enumerate(s.pools):
        whole = d.roundup(op.size, model.units[model.device(i)]) == op.size
        mine = d.all(op.size > 0, op.size <= pool.out, d.any(model.vmm, whole))
        law.append(d.any(d.inv(d.all(free, op.pool == i)), mine))
    law.append(d.all(op.pool >= 0, op.pool < len(model.pools)))
    return law


def init(model: Model) -> State:
    zeros = (0,) * len(model.devices)
    return model.init(zeros, zeros)


def start(model: Model) -> tuple[State, list[Value]]:
    """Devices of any capacity, ranges of any whole number of units."""
    zeros = (0,) * len(model.devices)
    cap, room = fresh(zeros, "cap"), fresh(zeros, "room")
    whole = [model.d.roundup(r, u) == r for r, u in zip(room, model.units, strict=True)]
    return model.init(cap, room), [*whole, *(x >= 0 for x in (*cap, *room))]


def operation(model: Model) -> PoolOp:
    return PoolOp(0, reach=(False,) * len(model.devices))


def of_step(model: Model, s: State, op: PoolOp, t: State, out: Out) -> dict[str, Rules]:
    return rules(Step(model, seen(model, s), op, seen(model, t), out))


def splits(kind: int) -> tuple[dict[str, int], ...]:
    """Pool by pool."""
    return tuple({"pool": p} for p in range(MOST)) if kind in _NAMES_POOL else ({},)


MOST = 4  #: pools of any config
_NAMES_POOL = (Kind.POOL_ALLOC, Kind.POOL_FREE, Kind.COMPUTE)
#: kind, blocks kept, devices, streams, units: a pool beside another one on its device, and one on another device
MACHINE = Machine(
    name="pools",
    model=Model,
    configs=((VMM, 0, 2, 2, 4096, 2 << 20), (LEGACY, 2, 2, 1, 4096), (LEGACY, 1, 1, 2, 4096)),
    kinds=(Kind.POOL_ALLOC, Kind.POOL_FREE, Kind.TRIM, Kind.CAPACITY, Kind.COMPUTE, Kind.SYNC),
    clauses=CLAUSES,
    init=init,
    operation=operation,
    rules=of_step,
    invariants=invariants,
    lawful=lawful,
    start=start,
    splits=splits,
    sizes="kind of pool, blocks kept, devices, streams, units",
)

__all__ = ["CLAUSES", "MACHINE", "Out", "Pool", "PoolOp", "Seen", "Step", "rules", "seen"]
