"""A pool of the workers of a Dask cluster: `gallocheck fuzz --cluster ADDRESS`.

    dask scheduler                                       # prints its address
    dask worker ADDRESS --nthreads 1 --nworkers -1       # on each machine, where gallocheck is installed

Batches are shared out by number, and what they found is put together in the campaign's store, here. The
subject library travels to the workers. A worker that dies loses its batch, which another one does again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import TimeoutError as FuturesTimeout
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

from ...native.worker import SubjectError
from ..hands import TRIES, Ended
from .errors import CampaignError
from .work import Bench, Done, Job

ANSWER_S = 10.0  #: that a scheduler has to answer
_here = threading.local()  # a worker's thread has a bench of its own


def do(job: Job, digest: str, ours: str) -> Done:
    """On a worker: does a job with the library that it was sent. Raises SubjectError where it cannot."""
    if (theirs := version("gallocheck")) != ours:
        raise SubjectError(
            f"a worker has gallocheck {theirs}, the campaign {ours}; install the same everywhere."
        )
    path = place_of(digest)
    if not path.exists():
        raise SubjectError(f"a worker has lost the subject library {path}; start the workers again.")
    if not hasattr(_here, "bench"):
        _here.bench = Bench()
    try:
        done: Done = _here.bench.run(replace(job, library=str(path)))
        return done
    except SubjectError:
        _here.bench.close()  # the next try has a new process
        raise


def place_of(digest: str) -> Path:
    """Where a worker keeps the library of this digest."""
    return Path(tempfile.gettempdir()) / f"gallocheck-{os.getuid()}" / f"{digest}.so"


def put(raw: bytes, digest: str) -> None:
    """On a worker: writes the library, whole or not at all. Nobody else may write where it is."""
    path = place_of(digest)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    if path.parent.stat().st_uid != os.getuid():
        raise PermissionError(f"{path.parent} is somebody else's")
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(raw)
    os.replace(file.name, path)


class Cluster:
    """The workers of the scheduler at `address`, each thread one job at a time. A context manager.

    `library`: the subject library on this machine. Raises CampaignError: nobody answers, no workers,
    the scheduler went away.
    """

    def __init__(self, address: str, library: str) -> None:
        try:
            import distributed
        except ImportError:
            raise CampaignError(
                "--cluster needs Dask distributed: install it with pip install 'gallocheck[cluster]'."
            ) from None
        self.address, self.flying = address, dict[Any, Job]()
        self.dask: Any = distributed
        try:
            self.client = distributed.Client(address, timeout=ANSWER_S)
        except (OSError, ValueError, FuturesTimeout) as error:
            raise CampaignError(
                f"No Dask scheduler answers at {address} ({type(error).__name__}): name its address with --cluster."
            ) from None
        raw = Path(library).read_bytes()
        self.digest = hashlib.sha256(raw).hexdigest()
        self.seen = (0.0, 0)  # when the workers were counted, and how many there were
        self.asking(lambda: self.client.register_plugin(_carry(distributed, raw, self.digest)))
        if not self.size:
            self.close()
            raise CampaignError(
                f"The Dask scheduler at {address} has no workers: start some with dask worker."
            )

    def asking(self, ask: Callable[[], Any]) -> Any:
        """What the cluster answers. Raises CampaignError where it cannot."""
        try:
            return ask()
        except ImportError as error:
            raise CampaignError(
                f"The workers at {self.address} lack gallocheck ({error}): install the same version there."
            ) from None
        except (OSError, FuturesTimeout, self.dask.CancelledError) as error:
            raise CampaignError(
                f"The Dask scheduler at {self.address} went away ({type(error).__name__}):"
                " the same command goes on when it is back."
            ) from None

    @property
    def size(self) -> int:
        """Jobs that the cluster does at once: its workers may come and go."""
        at, many = self.seen
        if time.monotonic() - at > 2.0:
            many = sum(self.asking(self.client.nthreads).values())
            self.seen = (time.monotonic(), many)
        return many

    def begin(self, job: Job) -> None:
        # not pure: the same job given twice is done twice. A dead worker's job is done again anyway
        future = self.asking(
            lambda: self.client.submit(
                do, job, self.digest, version("gallocheck"), pure=False, retries=TRIES - 1
            )
        )
        self.flying[future] = job

    def ended(self, wait_s: float) -> list[Ended[Job, Done]]:
        if not self.flying:
            time.sleep(wait_s)
            return []

        def wait() -> Any:
            try:
                return self.dask.wait(list(self.flying), wait_s, "FIRST_COMPLETED").done
            except FuturesTimeout:
                return ()

        found = self.asking(wait)
        return [self.land(future) for future in found]

    def land(self, future: Any) -> Ended[Job, Done]:
        job = self.flying.pop(future)
        try:
            return Ended(job, self.asking(future.result))
        except SubjectError as error:
            return Ended(job, None, str(error))
        except self.dask.scheduler.KilledWorker:
            return Ended(job, None, "it killed worker after worker")

    def close(self) -> None:
        if self.client.status == "running":
            self.client.cancel(list(self.flying), force=True)
        self.flying.clear()
        self.client.close(timeout=2)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


def _carry(distributed: Any, raw: bytes, digest: str) -> Any:
    """What brings the library to every worker, those too that come later."""

    class Carry(distributed.WorkerPlugin):  # type: ignore[misc, name-defined]
        name = f"gallocheck-{digest[:16]}"

        def setup(self, worker: Any) -> None:
            put(raw, digest)

    return Carry()
