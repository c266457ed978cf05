"""A slip in what looks for damage is noticed where there is some: with the planted defects."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gallocheck.fuzz.mutants.catalogue import of_source
from gallocheck.fuzz.mutants.detector import Told
from gallocheck.fuzz.mutants.sources import Source, read, unbuilt
from gallocheck.native.library import library_path


def without(source: Source, folder: Path, statement: str) -> str:
    """The library with planted defects but without the statement."""
    folder.mkdir()
    assert source.text.count(statement) == 1
    library = folder / "without.so"
    assert source.planted(source.text.replace(statement, ";"), folder, library)
    return str(library)


def test_what_is_not_looked_at_is_told_of_no_more(tmp_path: Path) -> None:
    told = Told(str(library_path("planted")))
    assert len(told.of) > 150, "what the kept traces of planted defects show"
    compute = read("bundled", None, "compute.cpp", lambda text: None)
    output = told.otherwise(without(compute, tmp_path / "a", "check(i, {GC_BAD_OUTPUT, int32_t(i), -1});"))
    assert output is not None and "is told as" in output.message, output
    scratch = told.otherwise(without(compute, tmp_path / "b", "check_mark(scratch, i);"))
    assert scratch is not None and scratch.clause == "V2", scratch
    assert told.otherwise(str(library_path("planted"))) is None


def test_which_lines_look_for_damage() -> None:
    """All of compute.cpp; elsewhere those that tell of it, but not where a planted defect does it."""
    compute, sched = (unbuilt("bundled", None, name) for name in ("compute.cpp", "sched.cpp"))
    assert all(compute.detects(m.was) for m in of_source(compute) if "GC_PLANTED" not in m.was)
    assert sched.detects("f.trouble |= guard_trouble(*s.allocs[n]);") and not sched.detects("return DONE;")
    assert not sched.detects("if (GC_PLANTED(X)) f.trouble = 0;")
    assert not replace(sched, planted_parts=None).planted("", Path(), Path())
