"""States and operations of a pair in words, for traces that people read."""

from __future__ import annotations

from ..model.domain import Tree
from ..model.pair import BORROWER, OWNER, Out, RoleOp, State
from ..model.records import Kind, Status

WHO = ("owner", "borrower")


def sizes(entries: Tree) -> str:
    """Bytes by type and chunk: `[3 0] [5 1]`."""
    return " ".join("[" + " ".join(map(str, chunks)) + "]" for chunks in entries)


def types(flags: Tree) -> str:
    return " ".join(str(t) for t, on in enumerate(flags) if on) or "none"


def operation(op: RoleOp) -> str:
    """One operation, with the values that matter for it."""
    kind, who = Kind(op.kind), WHO[op.role]
    if kind == Kind.NEW:
        return f"a new allocator (types {types(op.uses)}) takes the owner's place"
    if kind == Kind.BORROW:
        has = f", publishing {sizes(op.need)}" if any(x for e in op.need for x in e) else ""
        clean = "" if op.clean else ", though it has buffers"
        return f"an allocator (types {types(op.uses)}) attaches to the {WHO[op.other]}{clean}{has}"
    if kind == Kind.CAPACITY:
        return f"device {op.type} has {op.value} bytes from now on"
    text = {
        Kind.FREE: "is freed", Kind.OWN: "becomes an owner", Kind.RESERVE: f"reserves {sizes(op.need)}",
        Kind.MEASURE: f"measures {sizes(op.need)}", Kind.ALLOC: f"allocates a graph of {sizes(op.need)}",
        Kind.COMPUTE: "computes", Kind.SHRINK: "requests a shrink", Kind.REMAKE: "is remade",
    }[kind]  # fmt: skip
    return f"the {who} {text}{_how(op, kind)}"


def _how(op: RoleOp, kind: Kind) -> str:
    how = []
    if kind == Kind.ALLOC:
        how.append("that it has a plan for" if op.match else "that it has no plan for")
    if kind in (Kind.RESERVE, Kind.MEASURE, Kind.ALLOC):
        how += [] if op.plannable else ["that cannot be planned"]
    if kind in (Kind.RESERVE, Kind.ALLOC):
        how += [f"type {types(op.inject)} fails"] if any(op.inject) else []
        how += [f"allocation {op.fail_nth} fails"] if op.fail_nth else []
    if kind == Kind.COMPUTE and op.unchecked:
        how.append("unchecked")
    return " (" + ", ".join(how) + ")" if how else ""


def state(s: State) -> str:
    """What is to be seen of a state, on one line."""
    parts = [f"buffers {sizes(s.asked)}"]
    if s.behind:
        parts.append(f"the borrower still on {sizes(s.old)}")
    for r in (OWNER, BORROWER):
        if s.active[r]:
            parts.append(f"{_role(s, r)} wants {sizes(s.req[r])}, generation {s.gen[r]}/{s.shrink_gen[r]}")
    used = " ".join(f"{u} of {c}" for u, c in zip(s.used, s.cap, strict=True))
    parts.append(f"in use {used}")
    if s.pending:
        who = " and ".join(w for w, n in zip(WHO, s.seen, strict=True) if n) or "nobody"
        parts.append(f"shrink pending, seen: {who}")
    return "; ".join(parts)


def _role(s: State, role: int) -> str:
    return WHO[role] if role == BORROWER or s.owner or s.active[BORROWER] else "plain allocator"


def result(out: Out) -> str:
    """The status, and what failed."""
    status = Status(out.status).name.lower()
    failed = f", the allocation of type {types(out.failed)} failed" if any(out.failed) else ""
    return status + failed + (", on memory that is gone" if out.touched else "")
