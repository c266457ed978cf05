"""What a campaign asks of those who do its jobs: processes here (local.py), or machines (cluster.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from .work import Done, Job

#: a job that ended its worker, or could not be done, is tried so often in all
TRIES = 3


class Ended(NamedTuple):
    """A job that is over. `done`: None where all tries failed; then `why` is one sentence."""

    job: Job
    done: Done | None
    why: str = ""


class Pool(Protocol):
    """Does jobs side by side. A worker that dies is replaced, and its job is done again by another."""

    @property
    def size(self) -> int:
        """Jobs that it does at once."""
        ...

    def begin(self, job: Job) -> None:
        """Has a job done. Not more than `size` at a time."""
        ...

    def ended(self, wait_s: float) -> Sequence[Ended]:
        """The jobs that have ended meanwhile; waits so long for the first."""
        ...

    def close(self) -> None:
        """Gives up what is being done, and leaves no process behind."""
        ...
