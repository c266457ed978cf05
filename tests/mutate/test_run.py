"""Mutants of the toy subject are built, told apart, checked, and kept whatever is killed meanwhile."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from gallocheck.fuzz import hands as hands_module
from gallocheck.fuzz.mutants.catalogue import Mutant
from gallocheck.fuzz.mutants.hands import Hands
from gallocheck.fuzz.mutants.run import State, Work
from gallocheck.fuzz.mutants.store import NAME, Store
from gallocheck.fuzz.mutants.trial import KILLED, SAME, SURVIVED, UNCOMPILED

from tests.cli.test_stopping import gone, subjects

from .toy_work import mutants, work


def states(folder: Path) -> dict[str, str]:
    """By mutant, what came of it, as another process sees it."""
    try:
        with closing(sqlite3.connect(f"file:{folder}/{NAME}?mode=ro", uri=True)) as db:
            return dict(db.execute("select key, state from mutants"))
    except sqlite3.Error:
        return {}


def of(what: list[Mutant], line: str) -> set[str]:
    return {m.key for m in what if m.becomes == line}


def test_killed_then_on(tmp_path: Path) -> None:
    """After kill -9 of the whole the same work goes on; what is in is not done again, and all comes in."""
    folder = tmp_path / "mutants"
    process = subprocess.Popen([sys.executable, "-m", "tests.mutate.toy_work", str(folder)])
    end = time.monotonic() + 60
    while len(states(folder)) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    below, before = subjects(process.pid), states(folder)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert before and gone(below), "they die with it"

    every = mutants("gc_session * gc_open", "return s;")
    state, after = work(folder)
    assert state.now <= len(every) - len(before) and state.done == state.all == len(every) == len(after)
    assert before.items() <= after.items()
    assert set(after.values()) <= {KILLED, SAME, SURVIVED, UNCOMPILED}
    turned = of(every, "if (setup->n_types != 0) {")  # no session is opened
    assert turned and any(after[key] == KILLED for key in turned), after
    again, _ = work(folder)
    assert again.now == 0 and again.killed == state.killed, "all is known"


def test_a_hand_that_dies_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mutant is checked by another; one that kills whoever checks it is left out."""
    few = mutants("gc_session * gc_open", "return NULL")
    with Store(tmp_path) as store, Hands(1) as hands:
        killed = 0

        def kill(state: State) -> None:
            nonlocal killed
            if killed < 1 and hands.busy:
                hands.busy[0].process.kill()
                killed += 1

        job = Work(store, few, 1, 0.5)
        assert job.run(hands, kill).done == len(few) == len(store.rows()) and not job.troubles
    monkeypatch.setattr(hands_module, "TRIES", 1)
    with Store(tmp_path / "b") as store, Hands(1) as hands:
        job = Work(store, few[:1], 1, 0.5)
        job.run(hands, lambda _: hands.busy and hands.busy[0].process.kill())
        assert list(job.troubles) == [few[0].key] and not store.rows()


def test_a_stop_leaves_the_rest(tmp_path: Path) -> None:
    few = mutants("gc_session * gc_open", "return s;")
    with Store(tmp_path) as store, Hands(1) as hands:
        state = Work(store, few, 1, 0.5).run(hands, lambda _: None, lambda: len(store.rows()) > 0)
        assert 0 < state.done < len(few) == state.all
    assert not list(tmp_path.glob("build-*"))


def test_what_a_session_keeps_is_noticed(tmp_path: Path) -> None:
    """Memory of the host that is not given back kills a mutant that no observation tells apart."""
    (mutant,) = (
        m for m in mutants("free(s->graphs[g]);", "return leak;") if (m.was, m.becomes) == ("free(s);", ";")
    )
    with Store(tmp_path) as store, Hands(1) as hands:
        Work(store, [mutant], 1, 0.2).run(hands, lambda _: None)
        (row,) = store.rows().values()
    assert row.state == KILLED and row.verdict is not None and "memory" in row.verdict.message
