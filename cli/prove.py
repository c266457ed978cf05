"""`gallocheck prove`: the clauses that are state machines, for every size, by induction."""

from __future__ import annotations

import os
import time

from rich.console import Console

from ..native.trees import cache_dir
from ..spec.machine import INVARIANT
from ..spec.proved import remember
from ..spec.prover import PROVED, prove
from ..spec.table import print_table

FILE = "proofs.json"  #: in the cache: what the last proofs gave


def run(console: Console, clauses: list[str]) -> int:
    """Proves and prints; 1 where one is refuted or unknown."""
    begin = time.monotonic()
    rows = prove(clauses or None, processes=min(2, os.cpu_count() or 1))
    remember(rows, cache_dir() / FILE)
    print_table(rows, console)
    names = {r.clause for r in rows if r.clause != INVARIANT}
    bad = {r.clause for r in rows if r.verdict != PROVED}
    lost = sorted({r.machine for r in rows if r.clause == INVARIANT and r.verdict != PROVED})
    console.print(
        f"{len(names - bad)} of {len(names)} clauses proved for unbounded sizes"
        f" in {time.monotonic() - begin:.1f} s"
    )
    if lost:
        console.print(f"invariants that are not proved: {', '.join(lost)}")
    return 1 if bad else 0
