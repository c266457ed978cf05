"""`make bench`: the table of speeds as ratios measured side by side in one run, and a picture.

    python bench/run.py [--quick] [--out DIR]

--quick takes a minute and goes to 10^6 operations; else 10^8, about ten minutes. One core.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import checked
import growth
import picture
from gallocheck.fuzz.subjects import resolve
from gallocheck.native.library import library_path
from rich.console import Console
from rich.table import Table
from timing import rate, ratio, side_by_side

console = Console()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    asked = parser.parse_args()
    os.environ["GALLOCHECK_DRIVER"] = "light"  # for all alike
    asked.out.mkdir(parents=True, exist_ok=True)
    seconds, most = (4.0, 10**6) if asked.quick else (25.0, 10**8)
    console.print("one core; every ratio is of things that take turns, in processor time")
    table = Table("figure", "against", "measured", "reach", "rate a second")
    for row in (*peers(seconds), *trees(seconds), *growing(most)):
        table.add_row(*row)
        console.print(f"  {row[0]}, {row[1]}: {row[2]} (reach {row[3]})", highlight=False)
    console.print(table)
    console.print(f"picture: {picture.campaign(asked.out, 10.0 if asked.quick else 60.0)}", highlight=False)
    return 0


Row = tuple[str, str, str, str, str]


def peers(seconds: float) -> list[Row]:
    """R on the bundled subject."""
    bundled = str(library_path("bundled"))
    rounds = {
        "isolated": checked.isolated(bundled),
        "in process": checked.in_process(),
        "alone": checked.alone(bundled),
        "simple": checked.simple(),
        "simple alone": checked.alone(bundled, drawn=checked.simple_batch),
    }
    hypothesis, rates = checked.hypothesis_machine(), side_by_side(rounds, seconds)
    r, own = "checked operations, R, bundled", statistics.median(rates["isolated"])
    rows = [
        (
            r,
            "Hypothesis state machine",
            times(turns(rounds["isolated"], hypothesis)),
            "500 times",
            f"{own:,.0f}",
        )
    ]
    with tempfile.TemporaryDirectory() as folder:
        rapid = checked.rapidcheck(Path(folder))
        said = times(turns(rounds["simple"], rapid)) if rapid else "librapidcheck-dev is not installed"
    simple = statistics.median(rates["simple"])
    rows.append((f"{r}, graphs of two tensors", "RapidCheck in C++", said, "5 times", f"{simple:,.0f}"))
    rows.append((r, "subject alone", f"{ratio(rates, 'isolated', 'alone'):.2f}", "0.4", ""))
    alone = f"{ratio(rates, 'simple', 'simple alone'):.2f}"
    rows.append((f"{r}, graphs of two tensors", "subject alone", alone, "0.4", ""))
    rows.append(("isolated", "in this process", f"{ratio(rates, 'isolated', 'in process'):.2f}", "0.8", ""))
    return rows


def turns(mine: Callable[[], int], peer: checked.Peer, n: int = 3) -> float:
    """How many times as fast `mine` is as the peer; they take turns, the median counts."""
    found = []
    for _ in range(n):
        found.append(rate(mine, checked.PEER_SECONDS) / peer.rate())
    return statistics.median(found)


def times(x: float) -> str:
    return f"{x:,.1f} times"


def trees(seconds: float) -> list[Row]:
    """P, G and R on a real tree, with the pair of the overlay."""
    library = resolve("ggml-resizable", None, lambda said: None).library
    rounds = {"checked": checked.isolated(library, judged=True), "alone": checked.alone(library)}
    rates = side_by_side(rounds, seconds)
    rate = statistics.median(rates["checked"])
    found = ratio(rates, "checked", "alone")
    return [("P, G and R on a ggml tree", "the tree alone", f"{found:.2f}", "0.4", f"{rate:,.0f}")]


def growing(most: int) -> list[Row]:
    """Cost with operations done and with tensors, and memory."""
    points, memory = growth.by_operations(most)
    flat = max(cost for _, cost in points[1:]) / points[0][1] if len(points) > 1 else 1.0
    sizes = growth.by_tensors()
    tensors = sizes[-1][1] / sizes[0][1]
    last = f"{points[-1][0]:.0e}".replace("e+0", "e")
    return [
        (
            f"cost an operation up to {last}",
            f"of the first {points[0][0]:.0e}",
            f"{flat:.2f} times",
            "1 (flat)",
            "",
        ),
        (
            "cost an operation and tensor, 1,000 tensors",
            "10 tensors",
            f"{tensors:.2f} times",
            "1 to 3 (n log n)",
            "",
        ),
        (f"memory after {last}", "after 1e6", f"{memory:.2f} times", "1.1", ""),
    ]


if __name__ == "__main__":
    raise SystemExit(main())
