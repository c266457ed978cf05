"""Planted defects: each kept counterexample is run again on the planted library, judged and drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gallocheck.fuzz.canary import path_of
from gallocheck.fuzz.catalogue import DEFECTS, SCHED_DEFECTS, Defect
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.replay import Replay, load
from gallocheck.model.records import Trace
from gallocheck.native.library import library_path
from gallocheck.report.drawing import STYLE
from gallocheck.report.memory import frames, modelled
from gallocheck.report.svg import over_time


class Silent(Exception):
    """A planted defect does not show any more. One sentence."""


@dataclass(frozen=True)
class Planted:
    """A planted defect, its counterexample, what it is blamed for and a picture (SVG) of its run.

    `again`: the counterexample was run when the page was made; else the picture is of the model's own run.
    """

    defect: Defect
    saved: Replay
    clause: str
    message: str
    step: int
    expected: str
    seen: str
    picture: str
    again: bool

    @property
    def command(self) -> str:
        tree = " --subject ggml-resizable" if self.defect in SCHED_DEFECTS else ""
        file = f"fuzz/canaries/{path_of(self.defect).name}"
        return f"gallocheck replay {file}{tree} --defect {self.defect.number}"


def all_planted() -> Iterator[Planted]:
    """Every planted defect, in the catalogue's order. Raises Silent where one does not show on its clause."""
    with Judge(str(library_path("planted")), timeout=2.0) as judge:
        for defect in DEFECTS:
            judge.plant(defect.number)
            yield run_again(defect, judge)
    for defect in SCHED_DEFECTS:  # they need a ggml tree to be built
        yield as_saved(defect)


def run_again(defect: Defect, judge: Judge) -> Planted:
    saved = load(path_of(defect))
    run = judge.run(saved.trace)
    v = judge.judged(saved.trace, run).failed
    if v is None or v.clause != defect.clause:
        raise Silent(
            f"Defect {defect.number} shows as {v.clause if v else 'nothing'}, not {defect.clause}: "
            f"run python -m gallocheck.fuzz.canary {defect.number}."
        )
    shown = frames(saved.trace, run, v)[: v.step + 1]
    picture = over_time(shown, f"defect{defect.number}", style=False)
    return Planted(defect, saved, v.clause, v.message, v.step, v.expected, v.seen, picture, True)


def as_saved(defect: Defect) -> Planted:
    saved = load(path_of(defect))
    picture = of_model(saved.trace, f"defect{defect.number}")
    sides = [x if isinstance(x, str) else "" for x in (saved.expected, saved.seen)]
    return Planted(defect, saved, saved.clause, saved.message, saved.step, sides[0], sides[1], picture, False)


def of_model(trace: Trace, name: str) -> str:
    """How the model runs a trace, as a picture."""
    return over_time(frames(trace, modelled(trace)), name, style=False)


def style() -> str:
    """The pictures' style, and its two palettes where the page's own switch says which."""
    light, dark = re.findall(r"\.gcpic \{([^}]*)\}", STYLE)[:2]
    palettes = {"light": _colours(light), "dark": _colours(dark)}
    switch = "".join(f'body[data-theme="{name}"] .gcpic {{{text}}}\n' for name, text in palettes.items())
    return STYLE + switch


def _colours(text: str) -> str:
    return " ".join(re.findall(r"--[\w-]+:[^;]+;", text))
