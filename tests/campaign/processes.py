"""Campaigns in processes that can be killed."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

from gallocheck.fuzz.campaign.local import Local
from gallocheck.fuzz.campaign.run import Campaign, Plan
from gallocheck.fuzz.campaign.store import NAME, Store
from gallocheck.native.library import library_path

from tests.cli.test_stopping import subjects

LIBRARY = str(library_path("planted"))


@dataclass(frozen=True)
class Work:
    """A campaign of so many small batches on a planted defect, in `at`.

    Its batches are given no kept traces: what is kept when a batch begins hangs on who was quicker.
    """

    at: Path
    batches: int
    defect: int
    ops: int = 100
    jobs: int = 2
    shrink_s: float = 0.1
    lanes: int = 0

    @property
    def plan(self) -> Plan:
        return Plan(
            LIBRARY, self.defect, "planted", "0", 5, self.at / "out", 1000.0, self.batches,
            shrink_s=self.shrink_s, ops=self.ops, share=0, lanes=self.lanes,
        )  # fmt: skip

    def run(self) -> None:
        with Store(self.at / "corpus") as store, Local(self.jobs) as pool:
            assert Campaign(store, pool, self.plan).run()

    def start(self) -> BaseProcess:
        process = get_context("fork").Process(target=self.run)
        process.start()
        return process


def end(processes: set[int]) -> None:
    """What `kill -9` does to each."""
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


def below(process: BaseProcess) -> set[int]:
    """All processes that it started, and those that they did."""
    assert process.pid is not None
    return subjects(process.pid)


def come(at: Path) -> int:
    """Batches that are in, as another process sees it, of the campaign in the folder `at`/corpus."""
    try:
        with closing(sqlite3.connect(f"file:{at}/corpus/{NAME}?mode=ro", uri=True)) as db:
            return int(db.execute("select n from counts where name = 'batches'").fetchone()[0])
    except (sqlite3.Error, TypeError):
        return 0
