"""The process that has a subject library loaded and forks a child for each subject.

It runs `main` in a fresh interpreter: no thread and no memory of the caller's is
in it. It talks over a socket of messages: 'F' with a descriptor forks a child that has
a planted defect (or none) and serves traces on it; 'R' reaps one. It ends when the socket closes. Children die with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import resource
import signal
import socket
import struct
import sys
import time
import traceback
from typing import Any

from . import lanes, packet
from .edges import Edges
from .header import SubjectError, ffi, load, plant

FORK, REAP, SERVE = b"F", b"R", b"S"
FORK_ASK = struct.Struct("=cI")  # 'F', number of a planted defect, 0: none
FORKED = struct.Struct("=i")
REAP_ASK = struct.Struct("=cid")  # 'R', process, seconds until it is killed
REAPED = struct.Struct("=i?")  # wait status, killed by us
LANES = b"L"
SERVE_ASK = struct.Struct("=cQI")  # 'S' or 'L', bytes of the block, of lanes the first that runs
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def main(control: int, block: int, edges: int, errors: int, path: str) -> None:
    """`control`, `block`, `edges`, `errors` are descriptors: the socket, the shared memory, that of the edge
    counters, the file for output."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what a subject started comes to us when it dies
    os.dup2(errors, 1)
    os.dup2(errors, 2)
    ask = socket.socket(fileno=control)
    try:
        lib = load(path)
    except SubjectError as error:
        ask.send(json.dumps({"error": str(error)}).encode())
        return
    ask.send(b"{}")
    while True:
        message, descriptors, _, _ = socket.recv_fds(ask, 64, 1)
        if not message:
            return
        if message[:1] == FORK:
            _fork(ask, lib, (block, edges), descriptors[0], path, FORK_ASK.unpack(message)[1])
        else:
            _, child, grace = REAP_ASK.unpack(message)
            ask.send(REAPED.pack(*_reap(child, grace)))


def _fork(
    ask: socket.socket, lib: Any, shared: tuple[int, int], descriptor: int, path: str, defect: int
) -> None:
    zygote = os.getpid()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            ask.close()
            _become_subject(zygote)
            _serve(lib, *shared, socket.socket(fileno=descriptor), path, defect)
            code = 0
        except BaseException:  # the last line of defence: nothing may run on in the forked copy
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(descriptor)
    _own_group(child)
    ask.send(FORKED.pack(child))


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _own_group(process: int) -> None:
    with contextlib.suppress(PermissionError, ProcessLookupError):
        os.setpgid(process, process)  # both sides do it, so that whoever comes first can rely on it


def _become_subject(zygote: int) -> None:
    _own_group(os.getpid())
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != zygote:
        os._exit(0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def _serve(lib: Any, block: int, edges: int, ask: socket.socket, path: str, defect: int) -> None:
    """Says what the subject is, then executes a packed trace, or a job of lanes, for each message."""
    counters = Edges(lib)
    try:
        plant(lib, path, defect)
    except SubjectError as error:
        ask.send(json.dumps({"error": str(error)}).encode())
        return
    text = ffi.string(lib.gc_describe()).decode(errors="replace")
    greeting = {"capabilities": int(lib.gc_capabilities()), "describe": text, "edges": counters.size}
    if counters.size:
        os.ftruncate(edges, counters.size)
        counted = mmap.mmap(edges, counters.size)
    ask.send(json.dumps(greeting).encode())
    memory: mmap.mmap | None = None
    start: Any = None
    while message := ask.recv(64):
        what, size, first = SERVE_ASK.unpack(message)
        if memory is None or len(memory) != size:
            memory = mmap.mmap(block, size)
            start = ffi.from_buffer("char[]", memory, require_writable=True)
        counters.reset()
        if what == LANES:
            lanes.execute(lib, start + 0, first)
        else:
            packet.execute(lib, start + 0)
        if counters.size:
            counters.copy(counted)
        ask.send(SERVE)


def _reap(child: int, grace: float) -> tuple[int, bool]:
    """Waits for the child; kills it, and all that it started, after `grace` seconds."""
    deadline = time.monotonic() + grace
    pause, killed = 0.0002, False
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() >= deadline:
            killed = True
            break
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    try:  # before it is reaped, so that the number cannot be another's by now
        os.killpg(child, signal.SIGKILL)
    except (PermissionError, ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    with contextlib.suppress(ChildProcessError):  # what the subject had started; all of it is killed
        while True:
            os.waitpid(-child, 0)
    return status, killed
