"""A subject's process, seen from the worker that has it: whether it answers, how it died, what it said last."""

from __future__ import annotations

import mmap
import os
import select
import signal
import socket
from dataclasses import dataclass
from typing import Any

from .packet import Death

_LAST_BYTES, _LAST_LINES = 4096, 20
_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS}


@dataclass(slots=True)
class Child:
    """`watch` wakes up when the child answers or ends."""

    process: int
    ask: socket.socket
    watch: select.poll
    end: int | None  # a descriptor of the process, where the system has such

    @classmethod
    def of(cls, process: int, ask: socket.socket) -> Child:
        watch = select.poll()
        watch.register(ask, select.POLLIN)
        try:  # its socket may live on in a process that it started
            end = os.pidfd_open(process)
            watch.register(end, select.POLLIN)
        except (AttributeError, OSError):
            end = None
        return cls(process, ask, watch, end)

    def stirs(self, seconds: float) -> bool:
        return bool(self.watch.poll(seconds * 1000))

    def answers(self) -> bool:
        """Whether it has an answer; False when it stirred because it ended."""
        try:
            return bool(self.ask.recv(16, socket.MSG_DONTWAIT))
        except (BlockingIOError, ConnectionError):
            return False

    def forget(self) -> None:
        self.ask.close()
        if self.end is not None:
            os.close(self.end)


def readable(ask: socket.socket, seconds: float) -> bool:
    poll = select.poll()
    poll.register(ask, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def receive(ask: socket.socket) -> bytes:
    try:
        return ask.recv(1 << 16)
    except ConnectionError:
        return b""


def tail(errors: Any) -> str:
    """The last lines that the subject wrote."""
    size = os.fstat(errors.fileno()).st_size
    raw = os.pread(errors.fileno(), _LAST_BYTES, max(0, size - _LAST_BYTES))
    return "\n".join(raw.decode(errors="replace").strip("\0\n").splitlines()[-_LAST_LINES:])


def resident(process: int) -> int:
    """Bytes of memory that it has now; 0 where it is gone."""
    try:
        with open(f"/proc/{process}/statm") as f:
            return int(f.read().split()[1]) * mmap.PAGESIZE
    except (OSError, IndexError):
        return 0


def death(status: int, ended: str, words: str) -> Death:
    code = os.waitstatus_to_exitcode(status)
    if ended in ("hang", "memory"):
        return Death(0, None, ended, "", "SIGKILL", 0, words)
    if code >= 0:
        return Death(0, None, "exit", "", "", code, words)
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    kind = "abort" if -code == signal.SIGABRT else "fault" if -code in _FAULTS else "exit"
    return Death(0, None, kind, "", name, 0, words)
