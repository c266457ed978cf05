"""The catalogue of planted defects: two for each clause, each in the code, none in what is shipped."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter

import pytest
from gallocheck.fuzz.canary import path_of
from gallocheck.fuzz.catalogue import DEFECTS, FILES, NATIVE, SCHED_DEFECTS, Defect
from gallocheck.fuzz.draw import RandomDraw
from gallocheck.fuzz.generate import PROFILES, draw_trace
from gallocheck.fuzz.replay import load
from gallocheck.model.records import OpFlag
from gallocheck.native.header import SubjectError
from gallocheck.native.library import library_path
from gallocheck.native.worker import LocalRunner
from gallocheck.spec.clauses import CLAUSES

SOURCES = sorted(p for p in NATIVE.rglob("*.cpp") if p.parent.name in ("bundled", "driver"))


def test_each_clause_has_two() -> None:
    counts = Counter(d.clause for d in DEFECTS)
    assert [c.id for c in CLAUSES if counts[c.id] < 2] == []
    assert set(counts) == {c.id for c in CLAUSES} >= {d.clause for d in SCHED_DEFECTS}


def test_numbers_and_names_are_unique_and_every_line_is_read() -> None:
    every = [d.number for d in (*DEFECTS, *SCHED_DEFECTS)]
    assert len(set(every)) == len(every) and min(every) == 1
    assert len({d.name for d in DEFECTS}) == len({d.what for d in DEFECTS}) == len(DEFECTS)
    assert sum(len(re.findall(r"^GC_DEFECT\(", f.read_text(), re.M)) for f in FILES) == len(DEFECTS)


def test_each_is_planted_in_the_code_and_nothing_else_is() -> None:
    code = "\n".join(path.read_text() for path in (*SOURCES, *(NATIVE / "bundled").glob("*.h")))
    used = set(re.findall(r"GC_PLANTED\((\w+)\)", code)) - {"name"}
    assert used == {d.name for d in DEFECTS}


def test_each_has_a_kept_trace_that_names_its_clause() -> None:
    every = (*DEFECTS, *SCHED_DEFECTS)
    assert {p.name for p in path_of(DEFECTS[0]).parent.glob("*.json")} == {path_of(d).name for d in every}
    assert [d.number for d in every if load(path_of(d)).clause != d.clause] == []


def test_the_planted_build_has_each_and_no_other() -> None:
    for number in (0, *(d.number for d in DEFECTS)):
        LocalRunner(library_path("planted"), number).close()
    for number in (max(d.number for d in (*DEFECTS, *SCHED_DEFECTS)) + 1, 10**6):
        with pytest.raises(SubjectError, match=f"no planted defect {number}"):
            LocalRunner(library_path("planted"), number)


@pytest.mark.parametrize("defect", [DEFECTS[0], DEFECTS[-1]], ids=lambda d: str(d.number))
def test_the_shipped_build_refuses_them(defect: Defect) -> None:
    with pytest.raises(SubjectError, match=f"no planted defect {defect.number}"):
        LocalRunner(library_path("bundled"), defect.number)


def test_the_shipped_build_has_none_of_their_code() -> None:
    """Without the test build's macro the guard is the constant false, and the switch is not there."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    assert compiler, "the tests need a C++ compiler"
    include = [f"-I{NATIVE / part}" for part in ("include", "driver", "bundled")]
    guarded = [path for path in SOURCES if "GC_PLANTED" in path.read_text()]
    for path in guarded:
        call = [compiler, "-std=c++20", "-E", "-P", *include, str(path)]
        shipped, planted = (
            subprocess.run([*call, *more], capture_output=True, text=True, check=True).stdout
            for more in ([], ["-DGC_WITH_DEFECTS"])
        )
        assert re.search(r"\bplanted\b", planted) and not re.search(r"\bplanted\b", shipped), path.name
    assert guarded


def test_the_switch_does_nothing_in_the_shipped_build() -> None:
    traces = [load(path_of(d)).trace for d in DEFECTS if d.clause[0] == "P" and d.clause != "P13"]
    traces += [draw_trace(RandomDraw(seed), "pair") for seed in range(20)]
    traces = [t for t in traces if not any(op.flags & OpFlag.UNCHECKED for op in t.ops)]
    with LocalRunner(library_path("bundled")) as runner:
        before = [runner.run(trace) for trace in traces]
        assert [d.number for d in DEFECTS if runner._lib.gc_plant(d.number)] == []
        assert runner._lib.gc_plant(0)
        assert [runner.run(trace) for trace in traces] == before


def test_without_a_defect_the_planted_build_is_the_shipped_one() -> None:
    """The guarded lines are the only difference."""
    traces = [draw_trace(RandomDraw(seed), p) for p in PROFILES for seed in range(40)]
    with LocalRunner(library_path("bundled")) as shipped, LocalRunner(library_path("planted")) as planted:
        for trace in traces:
            if any(op.flags & OpFlag.UNCHECKED for op in trace.ops):
                continue  # it may touch memory that is gone, in this process
            assert shipped.run(trace) == planted.run(trace)
