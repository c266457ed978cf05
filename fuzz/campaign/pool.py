"""What a campaign asks of those who do its jobs: processes here (local.py), or machines (cluster.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..hands import Ended
from .work import Done, Job


class Pool(Protocol):
    """Does jobs side by side. A worker that dies is replaced, and its job is done again by another."""

    @property
    def size(self) -> int:
        """Jobs that it does at once."""
        ...

    def begin(self, job: Job) -> None:
        """Has a job done. Not more than `size` at a time."""
        ...

    def ended(self, wait_s: float) -> Sequence[Ended[Job, Done]]:
        """The jobs that have ended meanwhile; waits so long for the first."""
        ...

    def close(self) -> None:
        """Gives up what is being done, and leaves no process behind."""
        ...
