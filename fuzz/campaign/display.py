"""What a campaign shows while it runs: a table that changes on a terminal, a plain line a minute elsewhere."""

from __future__ import annotations

import sys
from collections import deque
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ...spec import branches
from .state import State

LINE_S = 60.0  #: between two plain lines
WINDOW_S = 10.0  #: the rate on a terminal is that of so many seconds


def span(seconds: float) -> str:
    """A duration for people: 7 s, 3 min 20 s, 7 h 59 min."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def left(state: State) -> str:
    """What is left to do."""
    if state.left_batches is not None:
        return f"{state.left_batches} batches left"
    return f"{span(state.left_s)} left" if state.left_s != float("inf") else "until a failure"


def coverage(state: State) -> str:
    """As '640 behaviours, 3412 edges, 283 of 397 model branches'; edges where the subject counts them."""
    seen = state.coverage
    words = [f"{seen[family]} {family}" for family in ("behaviours", "edges") if seen.get(family)]
    words += [f"{seen['branches']} of {branches.total()} model branches"] if seen.get("branches") else []
    return ", ".join(words) or "nothing yet"


def failures(state: State) -> str:
    """By clause, as 'R6 2, R8 1'."""
    return ", ".join(f"{clause or 'undecided'} {n}" for clause, n in state.findings.items()) or "none"


def line(state: State) -> str:
    """Everything in one line."""
    return (
        f"{span(state.spent_s)}: {state.operations} operations, {state.rate:.0f}/s, {state.batches} batches,"
        f" corpus {state.corpus}, coverage {coverage(state)}, failures {failures(state)}, {left(state)}"
    )


class Display:
    """Shows states. A context manager; `out` is where it writes (stderr)."""

    def __init__(self, out: TextIO | None = None, line_s: float = LINE_S) -> None:
        self.out, self.line_s = out or sys.stderr, line_s
        self.due = 0.0
        self.past: deque[tuple[float, int]] = deque()
        self.live = (
            Live(Text("starting"), console=Console(file=self.out), refresh_per_second=4, transient=True)
            if self.out.isatty()
            else None
        )

    def show(self, state: State) -> None:
        if self.live is not None:
            self.live.update(self.table(state))
        elif state.ran_s >= self.due:
            self.due = state.ran_s + self.line_s
            print(line(state), file=self.out, flush=True)

    def rate(self, state: State) -> float:
        """Operations a second of the last seconds."""
        self.past.append((state.ran_s, state.done_now))
        while self.past[-1][0] - self.past[0][0] > WINDOW_S:
            self.past.popleft()
        (from_s, before), (to_s, after) = self.past[0], self.past[-1]
        return (after - before) / (to_s - from_s) if to_s > from_s else state.rate

    def table(self, state: State) -> Table:
        table = Table.grid(padding=(0, 2))
        rows = {
            "operations": f"{state.operations}, {self.rate(state):.0f}/s",
            "batches": f"{state.batches}, {state.busy} jobs under way",
            "corpus": f"{state.corpus} traces",
            "coverage": coverage(state),
            "failures": failures(state) + (f", {state.waiting} to be made small" if state.waiting else ""),
            "time": f"{span(state.spent_s)}, {left(state)}",
        }
        for name, value in rows.items():
            table.add_row(name, Text(value, style="red" if name == "failures" and state.findings else ""))
        return table

    def __enter__(self) -> Display:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()
