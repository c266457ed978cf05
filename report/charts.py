"""The course of a check or campaign as small charts: one curve over time each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .drawing import Picture
from .record import Sample

WIDE, HIGH, LEFT, RIGHT, HEAD, FOOT = 420, 120, 64, 14, 12, 30  #: pixels


@dataclass(frozen=True, slots=True)
class Curve:
    """`points`: (seconds, value), seconds ascending. `unit`: what the values are."""

    title: str
    unit: str
    points: list[tuple[float, float]]


def curves(samples: Sequence[Sample]) -> list[Curve]:
    """What changes in these samples: throughput first, then coverage and findings."""
    out = []
    speed = rates(samples) if len(samples) >= 2 else []
    if len(speed) >= 2:
        out.append(Curve("Operations checked a second", "operations a second", speed))
    for name, title, unit in (
        ("operations", "Operations checked", "operations"),
        ("clauses", "Clauses exercised", "clauses"),
        ("features", "Behaviours, edges and branches seen", "features"),
        ("corpus", "Traces kept in the corpus", "traces"),
        ("findings", "Findings", "findings"),
    ):
        points = [(s.at_s, float(getattr(s, name))) for s in samples]
        if len(points) >= 2 and any(value for _, value in points):
            out.append(Curve(title, unit, points))
    return out


def rates(samples: Sequence[Sample], most: int = 60) -> list[tuple[float, float]]:
    """Operations a second, over at most so many spans of time, of much the same length."""
    span = max((samples[-1].at_s - samples[0].at_s) / most, 0.9 * samples[-1].at_s / max(1, len(samples)))
    out, before = [], samples[0]
    for after in samples[1:]:
        if after.at_s - before.at_s < span or after.at_s <= before.at_s:
            continue
        done = after.operations + after.lockstep - before.operations - before.lockstep
        out.append((after.at_s, max(0.0, done / (after.at_s - before.at_s))))
        before = after
    return out


def chart(curve: Curve, name: str) -> str:
    """One SVG text."""
    pic = Picture(name, f"{curve.title} over time", style=False)
    end = max(x for x, _ in curve.points) or 1.0
    top = max((y for _, y in curve.points), default=0.0) or 1.0
    right, floor = LEFT + WIDE, HEAD + HIGH

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + x / end * WIDE, floor - y / top * HIGH

    for part in (0.0, 0.5, 1.0):
        y = at(0, top * part)[1]
        pic.line((LEFT, y), (right, y), "axis" if not part else "rule")
        pic.text((LEFT - 6, y + 3), short(top * part), "soft small", "end")
        x = at(end * part, 0)[0]
        pic.text((x, floor + 15), seconds(end * part), "soft small", "middle" if part < 1 else "end")
    pic.path([at(x, y) for x, y in curve.points], "curve")
    last, value = curve.points[-1]
    pic.rect(
        (LEFT, HEAD, WIDE, HIGH),
        "bare",
        f"{short(value)} {curve.unit} at {seconds(last)}; at most {short(top)}",
    )
    return pic.done(right + RIGHT, floor + FOOT)


def short(value: float) -> str:
    """'950', '12.5k', '3.1M'."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if sign == 'k' else size):.3g}{sign}"
    return f"{value:.0f}" if value == int(value) or value >= 100 else f"{value:.1f}"


def seconds(value: float) -> str:
    """'7 s', '3.5 min', '8 h'."""
    if value < 120:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min" if value < 7200 else f"{value / 3600:.3g} h"
