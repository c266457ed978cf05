"""A pool of worker processes on this machine.

Each has a subject of its own (in yet another process, native/worker.py). One that dies, is killed or
hangs is replaced, and its job is done again. They die with the process that started them, however
that ends: the kernel kills them, and those that wait for a job see their pipe close.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import TracebackType

from ...native.worker import SubjectError
from .pool import TRIES, Ended
from .work import Bench, Done, Job, Task

_BOOT = "import json, sys; sys.path[:], module, rest = json.loads(sys.argv[1]); " + (
    "import importlib; importlib.import_module(module).main(*rest)"
)
_PR_SET_PDEATHSIG = 1
GRACE_S = 60.0  #: over its own limit, after which a worker is taken to hang


def main(descriptor: int, parent: int) -> None:
    """A worker: does the jobs that come through the pipe until it closes. A SubjectError is an answer."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        return
    with Connection(descriptor) as pipe, Bench() as bench, contextlib.suppress(EOFError, ConnectionError):
        while True:
            job = pipe.recv()
            try:
                answer: Done | str = bench.run(job)
            except SubjectError as error:
                answer = str(error)
            pipe.send(answer)


def limit_of(job: Job) -> float:
    """Seconds after which a worker that does the job hangs."""
    return GRACE_S + (job.limit_s if isinstance(job, Task) else job.seconds)


@dataclass(slots=True)
class _Hand:
    """A worker, and the job that it does. `tries`: how often the job was begun, by this one or another."""

    process: subprocess.Popen[bytes]
    pipe: Connection
    job: Job | None = None
    tries: int = 0
    until: float = 0.0

    @classmethod
    def hired(cls) -> _Hand:
        ours, theirs = socket.socketpair()
        with theirs:
            call = [sys.path, __name__, [theirs.fileno(), os.getpid()]]
            process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, json.dumps(call)],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for us
            )
        return cls(process, Connection(ours.detach()))

    def give(self, job: Job, tries: int) -> None:
        self.job, self.tries, self.until = job, tries, time.monotonic() + limit_of(job)
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


class Local:
    """`size` workers, started as they are needed. A context manager."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.hands: list[_Hand] = []

    def begin(self, job: Job) -> None:
        hand = next((h for h in self.hands if h.job is None), None)
        if hand is None:
            if len(self.hands) >= self.size:
                raise ValueError(f"all {self.size} workers have a job; wait for one to end")
            hand = _Hand.hired()
            self.hands.append(hand)
        hand.give(job, tries=1)

    def ended(self, wait_s: float) -> list[Ended]:
        busy = {h.pipe: h for h in self.hands if h.job is not None}
        found = [self.land(busy[pipe]) for pipe in wait(list(busy), wait_s)]  # type: ignore[index]
        now = time.monotonic()
        found += [self.again(h, "it hangs") for h in self.hands if h.job is not None and now > h.until]
        return [ended for ended in found if ended is not None]

    def land(self, hand: _Hand) -> Ended | None:
        """The end of a worker's job, or, where that was the worker's own, its job begun again."""
        said = hand.answer()
        if said is None or isinstance(said, str):
            return self.again(hand, said or "it was killed")
        job, hand.job = hand.job, None
        assert job is not None
        return Ended(job, said)

    def again(self, hand: _Hand, why: str) -> Ended | None:
        """Replaces a worker; the new one does its job, unless that was tried often enough."""
        job, tries = hand.job, hand.tries
        assert job is not None
        hand.dismiss()
        self.hands.remove(hand)
        if tries >= TRIES:
            return Ended(job, None, why)
        fresh = _Hand.hired()
        self.hands.append(fresh)
        fresh.give(job, tries + 1)
        return None

    def close(self) -> None:
        while self.hands:
            self.hands.pop().dismiss()

    def __enter__(self) -> Local:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


def cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
