"""What is known already: outcomes by fault in one file, written whole after each."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..whole_file import write_whole
from .seek import Outcome

NAME = "history.json"


class ResultsError(Exception):
    """The file of results cannot be used; one sentence; exit code 2."""

    exit_code = 2


class _File(msgspec.Struct, forbid_unknown_fields=True):
    seed: int
    gallocheck: str
    outcomes: dict[str, Outcome]


class Results:
    """The outcomes of one seed and version in `folder`; those of another are forgotten. Raises ResultsError."""

    def __init__(self, folder: Path, seed: int, version: str, fresh: bool = False) -> None:
        self.path, self.seed, self.version = folder / NAME, seed, version
        there = None if fresh else self._read()
        same = there is not None and (there.seed, there.gallocheck) == (seed, version)
        self.outcomes: dict[str, Outcome] = there.outcomes if there and same else {}

    def _read(self) -> _File | None:
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=_File)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise ResultsError(
                f"{self.path} is no file of results ({error}); start over with --fresh."
            ) from None

    def known(self, fault: str, given: float) -> Outcome | None:
        """What need not be done again: it was caught, or missed in as much time."""
        outcome = self.outcomes.get(fault)
        return outcome if outcome and (outcome.caught or outcome.given >= given) else None

    def add(self, fault: str, outcome: Outcome) -> None:
        self.outcomes[fault] = outcome
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = msgspec.json.format(msgspec.json.encode(_File(self.seed, self.version, self.outcomes)))
        write_whole(self.path, text + b"\n")
