"""Runs traces on a subject that lives in a process of its own: its death is a verdict, not ours."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model.records import Cap, Trace
from . import packet, zygote
from .child import Child, death, readable, receive, resident, tail
from .flight import Flight, TraceFlight
from .header import SubjectError, ffi, load, plant
from .lane_job import Block, JobFlight, LaneDeath
from .packet import Death, Run, StepSeen

__all__ = ["Death", "LocalRunner", "Run", "StepSeen", "SubjectError", "Worker"]

_BOOT = "import json, sys; sys.path[:], module, rest = json.loads(sys.argv[1]); " + (
    "import importlib; importlib.import_module(module).main(*rest)"
)
_FIRST_BLOCK = 1 << 20
_LOOK_S = 0.2  # seconds between two looks at what takes its time
MOST_MEMORY = 2 << 30  #: bytes of memory that a subject's process may come to have
TRIES = 3  #: of what a killed process had to do
MUCH_MEMORY = 1 << 28  #: one that hangs and has more than this has hung taking memory


class LocalRunner:
    """The interface of Worker in this process: for subjects that are trusted not to die."""

    def __init__(self, library_path: str | os.PathLike[str], defect: int = 0) -> None:
        self.path = os.fspath(library_path)
        self._lib = load(library_path)
        plant(self._lib, library_path, defect)
        self.capabilities = Cap(self._lib.gc_capabilities())
        self.describe: str = ffi.string(self._lib.gc_describe()).decode(errors="replace")

    def run(self, trace: Trace, fresh: bool = False) -> Run:
        """As Worker.run; `fresh` means nothing here."""
        packed, parts = packet.plan(trace)
        block = bytearray(packed.size)
        for at, data in parts:
            block[at : at + len(data)] = data
        packet.execute(self._lib, ffi.from_buffer("char[]", block, require_writable=True) + 0)
        return packet.unpack(packed, block)

    def close(self) -> None:
        self._lib.gc_plant(0)

    def __enter__(self) -> LocalRunner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Worker:
    """A subject in a process of its own, warm; replaced when it dies.

    `timeout`: seconds that one operation may take without getting on; after it the
    subject hangs. `limit`: seconds for a whole trace or job. `driver`: GALLOCHECK_DRIVER of the subject's
    process, '' for ours. Close it, or use it as a
    context manager. Not to be shared between threads. `edges`: how many edge counters the subject has.
    Raises SubjectError where the library cannot be used (see header.load, header.plant).
    """

    def __init__(
        self,
        library_path: str | os.PathLike[str],
        defect: int = 0,
        timeout: float = 5.0,
        limit: float = 60.0,
        driver: str = "",
    ) -> None:
        self.path = os.path.abspath(os.fspath(library_path))
        self.timeout, self.limit, self._defect, self._driver = timeout, limit, defect, driver
        self._child: Child | None = None
        self._flight: Flight | None = None
        self._errors = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        self._block, self._edges = os.memfd_create("gallocheck"), os.memfd_create("gallocheck-edges")
        self._memory = self._map(_FIRST_BLOCK)
        self.edges, self._taken = 0, np.zeros(0, np.uint8)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._zygote = self._start(theirs)
        self._finalizer = weakref.finalize(
            self, _end, self._control, self._zygote, (self._block, self._edges), self._errors
        )
        try:
            self._greet(self._control, "could not be loaded")
            self._fork()
        except BaseException:
            self.close()
            raise

    def run(self, trace: Trace, fresh: bool = False) -> Run:
        """Runs the trace, and says what was seen of it. The trace must be legal (fuzz.legal).

        `fresh`: in a child that has run nothing before. A subject that dies ends the
        run with a Death; the next run gets a new child.
        """
        self._settle()
        flight = TraceFlight(trace)
        if fresh:
            self._drop()
        self._launch(flight)
        self._settle()
        return flight.result()

    def plant(self, defect: int) -> None:
        """From now on the subject has another planted defect (0: none), in a new process.

        Raises SubjectError where the library has no such defect.
        """
        self._settle()
        self._drop()
        self._defect = defect
        self._fork()

    def run_all(self, traces: Iterable[Trace]) -> Iterator[tuple[Trace, Run]]:
        """(trace, run) of each, in order, as `run` gives it. The subject runs a trace while the caller
        looks at the one before and draws the next. `run` may be called in between."""
        before: TraceFlight | None = None
        for trace in traces:
            flight = TraceFlight(trace)
            self._settle()
            self._launch(flight)
            if before is not None:
                yield before.trace, before.result()
            before = flight
        self._settle()
        if before is not None:
            yield before.trace, before.result()

    def run_job(
        self, block: Block, most: int = 4
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], list[LaneDeath]]:
        """Runs a job of lanes: (seen, left, deaths) as Block.seen and Block.left say, views that the next run
        overwrites. A lane that the subject dies in shows nothing; those after it run in a new process, and
        after `most` deaths, or one hang, no more: lanes above the last death show nothing then either."""
        self._settle()
        deaths: list[LaneDeath] = []
        first = 0
        while first < len(block.job.ops):
            flight = JobFlight(block, first)
            self._launch(flight)
            self._settle()
            if flight.death is None:
                break
            deaths.append(flight.death)
            first = flight.death.lane + 1
            if len(deaths) == most or flight.death.death.kind == "hang":
                break
        return block.seen(self._memory), block.left(self._memory), deaths

    def take_edges(self) -> NDArray[np.uint8]:
        """How often each edge of the subject was taken since this was last called, an array (edges,): in the run
        that took it most, at most 255. A run that the subject died in is left out."""
        self._settle()
        if not self.edges:
            return np.zeros(0, np.uint8)
        taken, self._taken = self._taken, np.zeros(self.edges, np.uint8)
        return taken

    def resident(self) -> int:
        """Bytes of memory that the subject's process holds now; 0 where the system does not say."""
        self._settle()
        try:
            with open(f"/proc/{self._child.process if self._child else 0}/statm") as file:
                return int(file.read().split()[1]) * mmap.PAGESIZE
        except OSError:
            return 0

    def close(self) -> None:
        """Ends the subject and its helper processes; leaves none behind. May be called again."""
        self._flight = None
        self._drop()
        self._finalizer()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _map(self, size: int) -> mmap.mmap:
        size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        os.ftruncate(self._block, size)
        return mmap.mmap(self._block, size)

    def _start(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        descriptors = (theirs.fileno(), self._block, self._edges, self._errors.fileno())
        call = [sys.path, zygote.__name__, [*descriptors, self.path]]
        return subprocess.Popen(
            [sys.executable, "-c", _BOOT, json.dumps(call)],
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C is for us; they go when we do
            env=self._environment(),
        )

    def _environment(self) -> dict[str, str]:
        driver = {"GALLOCHECK_DRIVER": self._driver} if self._driver else {}
        return {**os.environ, "GGML_NO_BACKTRACE": "1", "MALLOC_PERTURB_": "165", **driver}

    def _greet(self, ask: socket.socket, fault: str) -> dict[str, Any]:
        """What the other side says of itself when it has started."""
        ready = readable(ask, 30.0)
        raw = receive(ask) if ready else b""
        if not raw:
            how = "it died" if ready else "it hangs"
            raise SubjectError(f"{self.path} {fault}: {how}. Its last words: {tail(self._errors) or 'none'}")
        said: dict[str, Any] = json.loads(raw)
        if "error" in said:
            raise SubjectError(said["error"])
        return said

    def _fork(self) -> Child:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                ask = zygote.FORK_ASK.pack(zygote.FORK, self._defect)
                socket.send_fds(self._control, [ask], [theirs.fileno()])
                reply = receive(self._control)
            except OSError:  # a closed pipe of ours is no closed stdout of the caller's
                reply = b""
        if not reply:
            ours.close()
            raise self._gone()
        self._child = Child.of(zygote.FORKED.unpack(reply)[0], ours)
        said = self._greet(ours, "died when asked what it is")
        self.capabilities = Cap(said["capabilities"])
        self.describe: str = said["describe"]
        if said["edges"] and not self.edges:
            self.edges = said["edges"]
            self._counted = np.frombuffer(mmap.mmap(self._edges, self.edges), np.uint8)
            self._taken = np.zeros(self.edges, np.uint8)
        return self._child

    def _launch(self, flight: Flight) -> None:
        """Has the child run a trace. It must be settled before anything else is asked of the child."""
        if flight.size > len(self._memory):
            self._memory = self._map(max(flight.size, 2 * len(self._memory)))
        child = self._child or self._fork()
        if os.fstat(self._errors.fileno()).st_size:
            os.ftruncate(self._errors.fileno(), 0)
            os.lseek(self._errors.fileno(), 0, os.SEEK_SET)
        for at, data in flight.parts:
            self._memory[at : at + len(data)] = data
        self._flight = flight
        with contextlib.suppress(BrokenPipeError, ConnectionError):  # it died meanwhile: _settle sees to it
            child.ask.send(zygote.SERVE_ASK.pack(flight.what, len(self._memory), flight.first))

    def _settle(self) -> None:
        """Waits for what runs, if anything does, and keeps what was seen of it. Where its process was killed
        from outside, which says nothing of the subject, it is run again."""
        flight = self._flight
        if flight is None:
            return
        death = self._landed(flight)
        for _ in range(TRIES - 1):
            if not (flight.idle(self._memory) or (death is not None and death.from_outside)):
                break
            self._launch(flight)
            death = self._landed(flight)
        self._flight = None
        if flight.idle(self._memory):
            raise SubjectError(f"{self.path} dies before it runs anything: {tail(self._errors)}")
        flight.land(self._memory, death)
        if self.edges and death is None:
            np.maximum(self._taken, self._counted, out=self._taken)

    def _landed(self, flight: Flight) -> Death | None:
        """None when it came to its end. Raises SubjectError where the process that forks was killed."""
        assert self._child is not None
        try:
            ended = self._await(self._child, flight)
        except BaseException:  # Ctrl-C: the child is in the middle of something
            self._flight = None
            self._drop()
            raise
        if ended == "done":
            return None
        reaped = self._reap(grace=2.0 if ended == "closed" else 0.0)
        if reaped is None:
            self._flight = None
            raise self._gone()
        status, killed = reaped
        return death(status, "hang" if killed and ended == "closed" else ended, tail(self._errors))

    def _await(self, child: Child, flight: Flight) -> str:
        """How it ended: "done", "closed" (the socket was), "hang" (nothing gets on), "memory" (it takes too much)."""
        pause = min(self.timeout / 8, _LOOK_S)
        begin = since = time.monotonic()
        last = flight.where(self._memory)
        while not child.stirs(pause):
            now, here = time.monotonic(), flight.where(self._memory)
            if here != last:
                last, since = here, now
            held = resident(child.process)
            if now - since >= self.timeout or now - begin >= self.limit:
                return "memory" if held > MUCH_MEMORY else "hang"
            if held > MOST_MEMORY:
                return "memory"
        return "done" if child.answers() else "closed"

    def _gone(self) -> SubjectError:
        return SubjectError(f"{self.path}: the process that loads it was killed; start again.")

    def _reap(self, grace: float) -> tuple[int, bool] | None:
        """Ends the child, by force after `grace` seconds: (wait status, by force). None where the zygote was
        killed: the child went with it."""
        child, self._child = self._child, None
        if child is None:
            return 0, False
        child.forget()
        try:
            self._control.send(zygote.REAP_ASK.pack(zygote.REAP, child.process, grace))
            reply = receive(self._control)
        except OSError:
            reply = b""
        if not reply:
            return None
        status, killed = zygote.REAPED.unpack(reply)
        return status, killed

    def _drop(self) -> None:
        self._reap(grace=0.0)


def _end(
    control: socket.socket, process: subprocess.Popen[bytes], shared: tuple[int, int], errors: Any
) -> None:
    """Closing the socket ends the zygote; its end ends its children."""
    control.close()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for memory in shared:
        os.close(memory)
    errors.close()
