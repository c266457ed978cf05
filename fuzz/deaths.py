"""Which clause an abort, a fault, a hang or a leak of the subject breaks, and the words for it."""

from __future__ import annotations

from ..model.records import Graph, Kind, Op, OpFlag
from ..native.worker import Death
from .alloc import History, Past, special
from .ledger import Ledger

HUNG = "did not return"

#: operations that must be a status whatever happens, and the clause that says so
BY_KIND = {
    Kind.OWN: "R1",
    Kind.BORROW: "R2",
    Kind.SHRINK: "R6",
    Kind.REMAKE: "R14",
    Kind.SYNC: "C1",
    Kind.RESET: "C4",
}


def describe(death: Death) -> str:
    """One sentence: how it died, and the assertion if it printed one."""
    words = {
        "abort": "aborted",
        "fault": "touched memory that is not mapped",
        "hang": HUNG,
        "memory": "took more and more memory",
    }
    how = words.get(death.kind, f"ended the process ({death.kind})")
    lines = [line.strip() for line in death.stderr.splitlines() if line.strip()]
    said = next(
        (x for x in lines if "assert" in x.lower() or "abort" in x.lower()), lines[-1] if lines else ""
    )
    return how + (f": {short(said)}" if said else "")


def short(line: str) -> str:
    """Without the directory of a source file, which differs from machine to machine."""
    return " ".join(word.rsplit("/", 1)[-1] if "/" in word else word for word in line.split())[:200]


#: the rule that a caller breaks, quoted by its place
RULES = {
    Kind.NEW: "an allocator number is used by one living allocator at a time (gallocheck.h, GC_NEW)",
    Kind.COMPUTE: "only a bound graph is computed (gallocheck.h, GC_COMPUTE)",
    Kind.SHRINK: "only an owner or a borrower requests a shrink (contract R6; gallocheck.h, GC_SHRINK)",
    Kind.REMAKE: "only an owner is remade (contract R14; gallocheck.h, GC_REMAKE)",
    Kind.SYNC: "only a scheduler is synchronized (gallocheck.h, GC_SYNC)",
    Kind.RESET: "only a scheduler is reset (gallocheck.h, GC_RESET)",
    Kind.POOL_ALLOC: "a pool is there, and its stream is not being captured (gallocheck.h, GC_POOL_ALLOC)",
    Kind.POOL_FREE: "only a block that is out is given back, of a VMM pool the latest (contract V2)",
    Kind.TRIM: "only a type of a session with pools is trimmed (gallocheck.h, GC_TRIM)",
    Kind.CAPTURE_BEGIN: "only a bound graph is captured, one at a time, with no work in flight"
    " (gallocheck.h, GC_CAPTURE_BEGIN)",
    Kind.CAPTURE_END: "only a capture that was begun ends (gallocheck.h, GC_CAPTURE_END)",
    Kind.LAUNCH: "only a captured graph is replayed, and not beside a partner's work (gallocheck.h, GC_LAUNCH)",
    Kind.DROP: "only a captured graph is dropped (gallocheck.h, GC_DROP)",
    Kind.CTX_OPEN: "a context is set up, and opened once (gallocheck.h, GC_CTX_OPEN)",
    Kind.CTX_CLOSE: "only an open context closes, the target while no slot is busy (gallocheck.h, GC_CTX_CLOSE)",
    Kind.CTX_ATTACH: "the draft attaches once, while both are open (contract W6; gallocheck.h, GC_CTX_ATTACH)",
    Kind.CTX_DECODE: "an open context decodes 1 to batch tokens with at most its own cells in use"
    " (gallocheck.h, GC_CTX_DECODE)",
    Kind.CTX_SYNC: "only an open context is synchronized (gallocheck.h, GC_CTX_SYNC)",
    Kind.CTX_NODES: "only an open context's graphs grow (gallocheck.h, GC_CTX_NODES)",
    Kind.CTX_TRIM: "only an open context trims (gallocheck.h, GC_CTX_TRIM)",
    Kind.SLOT_ENTER: "a request enters a free slot while the target is open (gallocheck.h, GC_SLOT_ENTER)",
    Kind.SLOT_STEP: "only a busy slot runs (gallocheck.h, GC_SLOT_STEP)",
    Kind.SLOT_LEAVE: "only a busy slot is left (gallocheck.h, GC_SLOT_LEAVE)",
}


def misused(op: Op) -> str:
    """The rule of the interface that the caller broke."""
    return RULES.get(op.kind, f"the allocator, graph or device must exist (gallocheck.h, GC_{op.kind.name})")


def expected(op: Op, ledger: Ledger) -> bool:
    """A compute without the generation check, on memory that is gone, must die: that is R12's proof."""
    if op.kind != Kind.COMPUTE or not op.flags & OpFlag.UNCHECKED or op.alloc not in ledger.allocs:
        return False
    return ledger.stale(op.alloc)


def blame(op: Op, ledger: Ledger, history: History) -> str:
    """The clause that a death during `op` breaks."""
    a = ledger.allocs.get(op.alloc)
    past = history.past.get(op.alloc, Past())
    if op.kind in BY_KIND:
        return BY_KIND[op.kind]
    if op.kind == Kind.COMPUTE:
        empty = a is not None and a.bound is not None and not any(t.alloc_size for t in a.bound.tensors)
        return "R12" if ledger.stale(op.alloc) else "P13" if empty else "P3"
    if past.failed:
        return "G2"
    if op.kind in (Kind.RESERVE, Kind.MEASURE, Kind.ALLOC) and a is not None:
        graph: Graph = ledger.session.graphs[op.graph]
        if past.measured is not None and op.kind == Kind.ALLOC:
            return "P12"
        if op.kind == Kind.ALLOC and not any(t.alloc_size for t in graph.tensors):
            return "P13"
        fresh = ledger.fresh.plan(ledger.setup, a.config, graph)
        if special(graph) and fresh.died:
            return "P13"
        if op.kind == Kind.ALLOC and fresh.died and fresh.need is not None:
            return "P3"  # a new allocator planned it, but cannot bind it either: the plan leaves its buffers
        if op.kind == Kind.ALLOC and past.reserved not in (None, graph):
            return "G4"
        return "G2"
    return "G5" if op.kind == Kind.FREE else "G2"
