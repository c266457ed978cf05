"""A campaign's worker processes on this machine (hands.py), each with a subject in yet another process."""

from __future__ import annotations

from ..hands import Hands
from .work import Bench, Done, Job, Task


def limit_of(job: Job) -> float:
    """Seconds that a job may take."""
    return job.limit_s if isinstance(job, Task) else job.seconds


class Local(Hands[Job, Done]):
    """`size` workers: a Pool (pool.py)."""

    def __init__(self, size: int) -> None:
        super().__init__(size, Bench, limit_of)
