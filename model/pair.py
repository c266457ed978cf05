"""What the model of a shared pair works on: state, operation, result. Bytes throughout.

All are named tuples of values of one domain (see domain.py), so a rule can
rebuild one with `_replace` and a domain can merge two of them leaf by leaf.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .domain import Tree, Value
from .records import Kind, Status

OWNER, BORROWER = ROLES = (0, 1)
Devices = tuple[tuple[int, ...], ...]  #: [type]: the devices that its buffers have a part on (M1)


def simple(types: int) -> Devices:
    """Every type on a device of its own."""
    return tuple((t,) for t in range(types))


class State(NamedTuple):
    """One pair and the devices under it. Bytes are bytes, counters count from 0."""

    uses: Tree  # [role][type]         the role's config has the type
    common: Tree  # [type]             the type's entry is shared (also once one role is gone)
    active: Tree  # [role]             the role is attached
    owner: Value  # role OWNER has become an owner (a plain allocator has not)
    behind: Value  # the borrower is still on `old`, its owner was remade (R14)
    req: Tree  # [role][type][chunk]   published requirement
    asked: Tree  # [type][chunk]       bytes asked for of the entry's buffer, 0: no buffer
    old: Tree  # [type][chunk]         the same of what a borrower that is behind holds
    used: Tree  # [device]             bytes in use, by anyone
    cap: Tree  # [device]              bytes there are
    gran: Tree  # [type]               every buffer is rounded up to a multiple of this
    seen: Tree  # [role]               reserved since the pending request
    asking: Tree  # [role]             asked for a shrink and has not reserved since
    pending: Value  # a request is not yet done
    gen: Tree  # [role]                generation, as the role reads it
    shrink_gen: Tree  # [role]         shrink generation, as the role reads it
    planned: Tree  # [role]            has a plan; its requirement is req
    ever: Tree  # [role]               a reserve once succeeded
    bound: Tree  # [role]              a graph is bound
    bound_gen: Tree  # [role]          generation when it was bound
    held: Tree  # [role][type]         the bound graph has bytes in the type
    stale: Tree  # [role]              history: memory of the bound graph was freed


class RoleOp(NamedTuple):
    """One operation of one role. Fields that a kind does not name are ignored."""

    kind: Value  # records.Kind; FREE is detach
    role: Value = OWNER
    uses: Tree = ()  # [type]          NEW, BORROW: the candidate's config has the type
    clean: Value = True  # BORROW: the candidate could become an owner (`could_own`)
    other: Value = OWNER  # BORROW: the role that is asked to share
    need: Tree = ()  # [type][chunk]   RESERVE, ALLOC: the graph's requirement; BORROW: the candidate's own
    plannable: Value = True  # RESERVE, MEASURE, ALLOC: planning works
    match: Value = True  # ALLOC: the plan was made for this graph; BORROW: the candidate has a plan
    inject: Tree = ()  # [device]      every allocation on the device fails
    fail_nth: Value = 0  # the n-th device allocation of the operation fails, 0: none
    unchecked: Value = False  # COMPUTE: do not compare generations (R12's counter-test)
    type: Value = 0  # CAPACITY: which device, its index
    value: Value = 0  # CAPACITY: its bytes from now on
    missing: Tree = (False,) * 4  # BORROW [bit of Shared]: what is not so of the two, where it counts (S4)
    by_sched: Value = (
        False  # RESERVE, ALLOC: forgets the bound graph first; ALLOC may plan again for any number of types
    )


class Out(NamedTuple):
    """What the caller sees, beside the state."""

    status: Value  # records.Status
    failed: Tree  # [type]             this entry's allocation failed
    allocations: Value  # device allocations tried
    touched: Value = False  # COMPUTE: ran on memory that is gone
    reason: Tree = (False,) * 4  # BORROW [bit of Shared]: what is missing (S4)
    planned: Value = False  # RESERVE, ALLOC: the graph was planned, its plan is the role's from now on

    @property
    def ok(self) -> Value:
        return self.status == int(Status.DONE)


def put(seq: Tree, i: int, x: Tree) -> Tree:
    """`seq` with element i replaced."""
    return (*seq[:i], x, *seq[i + 1 :])


def mine(d: Any, me: Tree, flags: Tree) -> Value:
    """The flag [role] of the role that acts (`me` is [role], true for that one)."""
    return d.any(d.all(me[OWNER], flags[OWNER]), d.all(me[BORROWER], flags[BORROWER]))


def without(d: Any, flags: Tree, me: Tree) -> Tree:
    """Flags [role], off for the role that acts."""
    return tuple(d.all(x, d.inv(m)) for x, m in zip(flags, me, strict=True))


def by_role(d: Any, me: Tree, new: Tree, old: Tree) -> Tree:
    """[role]: `new` for the role that acts, `old` for the other."""
    return tuple(d.ite(m, n, o) for m, n, o in zip(me, new, old, strict=True))


def may_plan(d: Any, uses: Tree, by_sched: Value) -> Value:
    """G4: whether an ALLOC may plan by itself: it has one type, or is a scheduler's. `uses` is [type]."""
    return d.any(sum(d.ite(u, 1, 0) for u in uses) == 1, by_sched)


def candidate(
    d: Any, s: State, owner: Value, could_own: Value, uses: Tree, missing: Tree = (False,) * 4
) -> RoleOp:
    """What a BORROW asks of the other's pair, of a candidate whose own pair is in state `s`.

    `owner`: it has that role there. `could_own`: it may become an owner (R1). `uses` is [type].
    """
    return RoleOp(
        Kind.BORROW, BORROWER, uses=uses, clean=d.all(owner, could_own),
        need=s.req[OWNER], match=s.planned[OWNER], missing=missing,
    )  # fmt: skip
