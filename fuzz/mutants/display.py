"""What is shown while mutants are checked: a live line on a terminal, a plain line a minute elsewhere."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ..campaign.display import LINE_S, span
from .run import State


def line(state: State) -> str:
    rate = 60 * state.now / state.ran_s if state.ran_s else 0.0
    left = f"{span(state.left_s)} left" if state.left_s != float("inf") else "time left not known yet"
    return (
        f"{state.done}/{state.all} mutants, {rate:.1f} a minute, {state.killed} killed,"
        f" {state.survived} survived, {left}"
    )


class Display:
    """Shows states: a live line on a terminal, a plain line a minute elsewhere. A context manager."""

    def __init__(self, line_s: float = LINE_S) -> None:
        self.due, self.line_s = 0.0, line_s
        self.live = (
            Live(Text("starting"), console=Console(stderr=True), refresh_per_second=4, transient=True)
            if sys.stderr.isatty()
            else None
        )

    def show(self, state: State) -> None:
        if self.live is not None:
            self.live.update(Text(line(state)))
        elif state.ran_s >= self.due:
            self.due = state.ran_s + self.line_s
            print(line(state), file=sys.stderr, flush=True)

    def __enter__(self) -> Display:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()
