"""What a check says of a step, and how findings are told apart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Sort = Literal["broken", "misuse", "silent"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One thing found at one step of a trace.

    broken: `clause` is broken. misuse: the caller broke a rule that the interface states, quoted in
    `message`. silent: model and subject differ, and no clause decides (clause is ''). `expected` and
    `seen` show the field in which they differ.
    """

    sort: Sort
    clause: str
    message: str
    step: int
    op: str
    expected: str = ""
    seen: str = ""

    @property
    def signature(self) -> str:
        """Equal for findings that are most likely the same: clause, operation, message without numbers."""
        words = re.sub(r"0x[0-9a-f]+|[0-9]+", "#", self.message)
        words = re.sub(r"(#, )+#,?", "#", words)  # lists of any length are alike
        return f"{self.clause or self.sort}|{self.op}|{words}"

    def __str__(self) -> str:
        name = self.clause if self.sort == "broken" else self.sort
        return f"{name}: {self.message}"
