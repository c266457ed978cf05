"""python -m gallocheck.fuzz.shortest [CLAUSE...]: keeps shorter traces where it finds any."""

from __future__ import annotations

import sys

from ...native.library import library_path
from ...spec.clauses import CLAUSES, select
from .find import find

SECONDS, SHRINK_S = 40.0, 3.0

if __name__ == "__main__":
    wanted = [c.id for c in (select(sys.argv[1:]) if sys.argv[1:] else CLAUSES)]
    missing = find(str(library_path("bundled")), wanted, 1, SECONDS, SHRINK_S, lambda s: print(s, flush=True))
    raise SystemExit(f"none found: {', '.join(missing)}" if missing else 0)
