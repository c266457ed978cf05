"""Failures to draw: kept traces of planted defects, run on the planted subject or by the model alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gallocheck.fuzz.canary import path_of
from gallocheck.fuzz.catalogue import DEFECTS
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.replay import Replay, load
from gallocheck.native.library import library_path

BY_NUMBER = {d.number: d for d in DEFECTS}


def file_of(defect: int) -> Path:
    """The kept replay file of a planted defect."""
    return path_of(BY_NUMBER[defect])


def kept(defect: int) -> Replay:
    return load(file_of(defect))


@contextmanager
def planted() -> Iterator[Judge]:
    """The planted subject; `judge.plant(n)` switches a defect on."""
    with Judge(str(library_path("planted")), timeout=2.0) as judge:
        yield judge
