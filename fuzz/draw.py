"""Where choices come from. Rules of generation are written once against Draw."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Draw(Protocol):
    """A source of choices."""

    def integer(self, low: int, high: int) -> int:
        """An int in [low, high]."""
        ...

    def choice(self, options: Sequence[T]) -> T:
        """One of `options`, which are not empty."""
        ...

    def boolean(self, p: float) -> bool:
        """True with probability `p`."""
        ...


class RandomDraw:
    """Choices of a seeded random.Random: for campaigns. The same seed gives the same choices."""

    def __init__(self, seed: int | random.Random) -> None:
        self._random = seed if isinstance(seed, random.Random) else random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        span = high - low + 1
        if span <= 1 << 32:  # much faster than randint; the bias is below 2^-20
            return low + int(self._random.random() * span)
        return self._random.randint(low, high)

    def choice(self, options: Sequence[T]) -> T:
        return options[int(self._random.random() * len(options))]

    def boolean(self, p: float) -> bool:
        return self._random.random() < p


class HypothesisDraw:
    """Choices of Hypothesis, so that it can shrink and replay them.

    `draw` is what `@hypothesis.strategies.composite` hands over. Built so that
    simpler choices (the low end, the first option, False) are what it shrinks to.
    """

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        from hypothesis import strategies  # only tests have it

        self._draw, self._st = draw, strategies

    def integer(self, low: int, high: int) -> int:
        return int(self._draw(self._st.integers(low, high)))

    def choice(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def boolean(self, p: float) -> bool:
        if p <= 0:
            return False
        return self.integer(0, 99) >= 100 - max(1, round(100 * p))


def weighted(draw: Draw, options: Sequence[tuple[T, int]]) -> T:
    """One of the options, each with its weight (at least one is above 0)."""
    at = draw.integer(0, sum(w for _, w in options) - 1)
    for option, weight in options:
        at -= weight
        if at < 0:
            return option
    raise AssertionError("weights are not negative")
