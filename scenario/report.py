"""What a scenario gives: figures, measured beside stated, and the memory over time."""

from __future__ import annotations

from dataclasses import dataclass, field

MIB = 1 << 20


class UnknownScenario(ValueError):
    """No scenario has this name, or pictures have no place; one sentence for the user; exit code 2."""

    exit_code = 2


@dataclass(frozen=True)
class Figure:
    """One figure. `stated`: what the seeds say, None where they say nothing; `why`: one line on the difference."""

    what: str
    stated: float | str | None
    measured: float | str
    unit: str = "MiB"
    why: str = ""

    @property
    def difference(self) -> float | None:
        """Measured less stated, where both are numbers."""
        if isinstance(self.stated, str) or isinstance(self.measured, str) or self.stated is None:
            return None
        return self.measured - self.stated


@dataclass
class Curve:
    """Memory over time: MiB in use after each operation, and what the operation was.

    Curves of one `panel` are drawn together.
    """

    name: str
    panel: str = ""
    mib: list[float] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)  #: indices of operations that were refused


@dataclass
class Report:
    """One scenario: `derived` and `assumed` say where its sizes come from."""

    name: str
    title: str
    derived: tuple[str, ...]
    assumed: tuple[str, ...]
    figures: list[Figure] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    limits: dict[str, float] = field(default_factory=dict)  #: MiB by name: lines in the picture
    seconds: float = 0.0
