"""`make gpu-check`: the whole check on a real card, and its driver's error codes beside the documented ones.

    python -m gallocheck.cli.gpu_check FOLDER SECONDS

FOLDER has the built subject library and driver_misuse (native/gpu_check.sh builds them). The last lines
are a short table. Exit codes: 0 all well, 1 a clause is broken or a code differs, 3 no GPU.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ..fuzz.applies import applies
from ..fuzz.hunt import Hunt, Result
from ..fuzz.judge import Judge
from ..spec.clauses import CLAUSES, LAYERS, Clause

#: seconds that one trace may take: the first one starts the driver and compiles the kernels
TRACE_S = 60.0


@dataclass(frozen=True, slots=True)
class Misuse:
    """What the driver answered to the list of native/tests/misuse.h. `died`: its last words, '' where it came through."""

    card: str
    version: int
    cases: int
    different: tuple[str, ...]  # a line each
    died: str


class NoCard(Exception):
    """There is no card: one sentence."""


def misuse(program: Path) -> Misuse:
    """Runs the list on the card. Raises NoCard."""
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=120)
    lines = done.stdout.splitlines()
    if done.returncode == 3:
        raise NoCard(lines[0])
    different = []
    for line in lines[2:]:
        name, same, codes = line.split(" ", 2)
        if same != "1":
            got, documented = codes.split(" / ")
            different.append(f"{name}: the card answers {got}, documented is {documented}")
    died = (
        "" if done.returncode == 0 else f"ended with exit code {done.returncode} after {lines[-1].split()[0]}"
    )
    return Misuse(lines[0], int(lines[1]), len(lines) - 2, tuple(different), died)


def hunt(library: Path, seconds: float) -> tuple[Result, list[Clause]]:
    """Traces of all kinds on the card, and the clauses that they are held to."""
    os.environ["GALLOCHECK_DRIVER"] = "cuda"
    with Judge(str(library), timeout=TRACE_S) as judge:
        print(f"subject   {judge.describe}", flush=True)
        seed = random.SystemRandom().randrange(2**32)
        print(f"seed      {seed}", flush=True)
        result = Hunt(judge, seed, folder=Path("findings")).run(seconds=seconds)
        return result, [c for c in CLAUSES if applies(c.id, judge.caps)]


def print_findings(result: Result) -> None:
    for finding in result.findings:
        v = finding.verdict
        print(f"{v.clause} {v.sort} ({finding.count} times): {v.message}; replay {finding.path}")


def print_letters(result: Result, rows: list[Clause]) -> None:
    broken = {f.verdict.clause for f in result.findings}
    for letter, layer in LAYERS.items():
        mine = [c for c in rows if c.letter == letter]
        if not mine:
            continue
        silent = [c.id for c in mine if not result.tally[c.id]]
        bad = [c.id for c in mine if c.id in broken]
        verdict = f"broken: {', '.join(bad)}" if bad else "holds"
        if silent:
            verdict += f"; not exercised: {', '.join(silent)}"
        print(f"{letter}  {layer:30} {sum(result.tally[c.id] for c in mine):8}  {verdict}")


def main(arguments: list[str]) -> int:
    folder, seconds = Path(arguments[0]), float(arguments[1])
    begin = time.monotonic()
    try:
        codes = misuse(folder / "driver_misuse")
    except NoCard as error:
        print(f"gpu-check: {error} Nothing was checked.")
        return 3
    result, rows = hunt(folder / "libgallocheck_bundled.so", seconds)
    print_findings(result)
    for line in codes.different:
        print(line)
    built = os.environ.get("GALLOCHECK_KERNELS")
    print()
    print(f"card      {codes.card}, driver {codes.version // 1000}.{codes.version % 1000 // 10}")
    print(f"kernels   {'built by nvcc for this card' if built else 'the committed PTX'}")
    print(
        f"misuse    {codes.cases - len(codes.different)} of {codes.cases} cases as documented {codes.died}".rstrip()
    )
    print_letters(result, rows)
    print(
        f"{result.operations} operations in {result.traces} traces, {result.seconds:.0f} s, "
        f"{result.operations / max(result.seconds, 1e-9):.0f}/s; {len(result.findings)} findings; "
        f"{time.monotonic() - begin:.0f} s in all"
    )
    return 1 if result.findings or codes.different or codes.died else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
