"""Worker processes on this machine, that campaigns and mutants share: each does jobs on a bench of its own.

    with Hands(4, Bench, limit_of) as hands:
        hands.begin(job)
        for ended in hands.ended(1.0): ...

One that dies, is killed or hangs is replaced, and its job is done again. They die with the process that
started them, however that ends: the kernel kills them, and those that wait for a job see their pipe close.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Generic, Protocol, TypeVar

from ..native.worker import SubjectError

_BOOT = "import json, sys; sys.path[:], module, rest = json.loads(sys.argv[1]); " + (
    "import importlib; importlib.import_module(module).main(*rest)"
)
_PR_SET_PDEATHSIG = 1
GRACE_S = 60.0  #: over a job's own limit, after which a worker is taken to hang
TRIES = 3  #: a job that ended its worker, or could not be done, is tried so often in all

Job = TypeVar("Job")
Done = TypeVar("Done")
Asked = TypeVar("Asked", contravariant=True)
Made = TypeVar("Made", covariant=True)


class Bench(Protocol[Asked, Made]):
    """Does jobs."""

    def run(self, job: Asked, /) -> Made:
        """Raises SubjectError where the job cannot be done."""
        ...


@dataclass(frozen=True, slots=True)
class Ended(Generic[Job, Done]):
    """A job that is over. `done`: None where all tries failed; then `why` is one sentence."""

    job: Job
    done: Done | None
    why: str = ""


def main(descriptor: int, parent: int, module: str, name: str) -> None:
    """A worker: does the jobs that come through the pipe until it closes. A SubjectError is an answer."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        return
    opened = getattr(importlib.import_module(module), name)
    with Connection(descriptor) as pipe, opened() as bench, contextlib.suppress(EOFError, ConnectionError):
        while True:
            job = pipe.recv()
            try:
                answer = bench.run(job)
            except SubjectError as error:
                answer = str(error)
            pipe.send(answer)


@dataclass(slots=True)
class Hand(Generic[Job, Done]):
    """A worker, and the job that it does. `tries`: how often the job was begun, by this one or another."""

    process: subprocess.Popen[bytes]
    pipe: Connection
    job: Job | None = None
    tries: int = 0
    until: float = 0.0

    def give(self, job: Job, tries: int, seconds: float) -> None:
        self.job, self.tries, self.until = job, tries, time.monotonic() + seconds
        with contextlib.suppress(ConnectionError):  # it is dead: that shows when its answer is read
            self.pipe.send(job)

    def answer(self) -> Done | str | None:
        """What it answers; None where it is dead."""
        try:
            said: Done | str = self.pipe.recv()
            return said
        except (EOFError, OSError):
            return None

    def dismiss(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.wait()


class Hands(Generic[Job, Done]):
    """`size` workers, started as they are needed. A context manager.

    `bench`: a class or function of a module, which a worker calls once: gives a context manager of a Bench.
    `limit_of`: seconds that a job may take.
    """

    def __init__(
        self,
        size: int,
        bench: Callable[[], AbstractContextManager[Bench[Job, Done]]],
        limit_of: Callable[[Job], float],
    ) -> None:
        self.size, self.limit_of = size, limit_of
        self.bench = [bench.__module__, bench.__name__]  # type: ignore[attr-defined]
        self.hands: list[Hand[Job, Done]] = []

    @property
    def busy(self) -> list[Hand[Job, Done]]:
        """Those that have a job."""
        return [hand for hand in self.hands if hand.job is not None]

    def begin(self, job: Job) -> None:
        """Has a job done. Not more than `size` at a time."""
        hand = next((h for h in self.hands if h.job is None), None)
        if hand is None:
            if len(self.hands) >= self.size:
                raise ValueError(f"all {self.size} workers have a job; wait for one to end")
            hand = self.hired()
        hand.give(job, 1, self.limit_of(job) + GRACE_S)

    def hired(self) -> Hand[Job, Done]:
        ours, theirs = socket.socketpair()
        with theirs:
            call = [sys.path, __name__, [theirs.fileno(), os.getpid(), *self.bench]]
            process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, json.dumps(call)],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for us
            )
        hand: Hand[Job, Done] = Hand(process, Connection(ours.detach()))
        self.hands.append(hand)
        return hand

    def ended(self, wait_s: float) -> list[Ended[Job, Done]]:
        """The jobs that have ended meanwhile; waits so long for the first."""
        busy = {h.pipe: h for h in self.busy}
        found = [self.land(busy[pipe]) for pipe in wait(list(busy), wait_s)]  # type: ignore[index]
        now = time.monotonic()
        found += [self.again(h, "it hangs") for h in self.busy if now > h.until]
        return [ended for ended in found if ended is not None]

    def land(self, hand: Hand[Job, Done]) -> Ended[Job, Done] | None:
        """The end of a worker's job, or, where that was the worker's own, its job begun again."""
        said = hand.answer()
        if said is None or isinstance(said, str):
            return self.again(hand, said or "it was killed")
        job, hand.job = hand.job, None
        assert job is not None
        return Ended(job, said)

    def again(self, hand: Hand[Job, Done], why: str) -> Ended[Job, Done] | None:
        """Replaces a worker; the new one does its job, unless that was tried often enough."""
        job, tries = hand.job, hand.tries
        assert job is not None
        hand.dismiss()
        self.hands.remove(hand)
        if tries >= TRIES:
            return Ended(job, None, why)
        self.hired().give(job, tries + 1, self.limit_of(job) + GRACE_S)
        return None

    def close(self) -> None:
        """Gives up what is being done, and leaves no process behind."""
        while self.hands:
            self.hands.pop().dismiss()

    def __enter__(self) -> Hands[Job, Done]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()
