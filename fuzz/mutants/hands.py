"""Processes that check mutants. One that dies is replaced, and its mutant is checked again.

They die with the process that started them, however that ends, and a mutant may not take all memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import resource
import signal
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from ...native.worker import SubjectError
from .sources import LIMIT_S
from .trial import Bench, Outcome, Trial

TRIES = 3
GRACE_S = 60.0
MOST_MEMORY = 6 << 30  #: bytes that a process may write to
_PR_SET_PDEATHSIG = 1


def serve(pipe: Connection, parent: int) -> None:
    """Checks what comes through the pipe until it closes."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = MOST_MEMORY if hard == resource.RLIM_INFINITY else min(MOST_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    os.environ["MALLOC_PERTURB_"] = (
        "165"  # of the subjects: memory that was never written, or is freed, shows
    )
    with Bench() as bench, contextlib.suppress(EOFError, ConnectionError):
        while True:
            trial = pipe.recv()
            try:
                answer: Outcome | str = bench.run(trial)
            except SubjectError as error:
                answer = str(error)
            pipe.send(answer)


@dataclass(slots=True)
class _Hand:
    process: Any
    pipe: Connection
    trial: Trial
    tries: int
    until: float


class Hands:
    """`size` processes, begun as they are needed. A context manager."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.context = multiprocessing.get_context("spawn")
        self.busy: list[_Hand] = []
        self.idle: list[_Hand] = []

    @property
    def free(self) -> int:
        return self.size - len(self.busy)

    def begin(self, trial: Trial, tries: int = 1) -> None:
        hand = self.idle.pop() if self.idle else self._hired(trial)
        hand.trial, hand.tries = trial, tries
        hand.until = time.monotonic() + trial.seconds + 2 * LIMIT_S + GRACE_S
        with contextlib.suppress(ConnectionError):  # it is dead: that shows when its answer is read
            hand.pipe.send(trial)
        self.busy.append(hand)

    def _hired(self, trial: Trial) -> _Hand:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=serve, args=(theirs, os.getpid()))
        process.start()
        theirs.close()
        return _Hand(process, ours, trial, 0, 0.0)

    def ended(self, wait_s: float) -> list[tuple[Trial, Outcome | str]]:
        """What has ended meanwhile; waits so long for the first. A text says why nothing came of a trial."""
        ready = wait([h.pipe for h in self.busy], wait_s) if self.busy else []
        found = []
        for hand in [h for h in self.busy if h.pipe in ready or time.monotonic() > h.until]:
            self.busy.remove(hand)
            said: Outcome | str = "it hung or was killed"
            try:
                if hand.pipe not in ready:
                    raise EOFError
                said = hand.pipe.recv()
                self.idle.append(hand)
            except (EOFError, OSError):
                _dismiss(hand)
                if hand.tries < TRIES:
                    self.begin(hand.trial, hand.tries + 1)
                    continue
            found.append((hand.trial, said))
        return found

    def __enter__(self) -> Hands:
        return self

    def __exit__(self, *_: object) -> None:
        for hand in (*self.busy, *self.idle):
            _dismiss(hand)


def _dismiss(hand: _Hand) -> None:
    hand.pipe.close()
    hand.process.kill()
    hand.process.join()
