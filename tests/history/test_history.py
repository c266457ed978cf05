"""gallocheck history: the catalogue holds together, a real fault is caught, an interrupted run goes on."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec
import pytest
from gallocheck.cli import history as job
from gallocheck.fuzz.checker import Report
from gallocheck.fuzz.history import catalogue as data
from gallocheck.fuzz.history import releases
from gallocheck.fuzz.history.blame import Blame
from gallocheck.fuzz.history.catalogue import Catalogue, CatalogueError, Fault, UnknownFault, catalogue
from gallocheck.fuzz.history.releases import judges
from gallocheck.fuzz.history.results import NAME, Results, ResultsError
from gallocheck.fuzz.history.seek import Outcome
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.replay import load
from gallocheck.fuzz.verdict import Verdict
from gallocheck.model.records import Cap, Setup, Trace
from gallocheck.native import trees
from rich.console import Console

from ..cli.running import gallocheck

FAULT = "measured-tenth"  # of two small releases


def console(path: Path) -> Console:
    return Console(file=(path / "said.txt").open("w"), width=200)


# -- the catalogue ---------------------------------------------------------------


def test_at_least_ten_faults_each_one_sentence_with_its_reference() -> None:
    faults = catalogue().faults
    assert len(faults) >= 10
    for fault in faults:
        assert re.fullmatch(r"[A-Z][^\n]*\.", fault.sentence), fault.id
        assert fault.reference and fault.bad != fault.good
        assert {catalogue().release(r).project for r in (fault.since, fault.bad, fault.good)}
        assert not any("/" in mend.file for mend in fault.mends)
    assert len({f.sentence for f in faults}) == len(faults)


def file(**changes: object) -> data._File:
    fault = {"id": "x", "sentence": "It is wrong.", "reference": "f.c", "since": "p 1", "bad": "p 1",
             "good": "p 2", "clauses": ["P1"], **changes}  # fmt: skip
    return msgspec.convert({"releases": {"p 1": "0" * 64, "p 2": "1" * 64}, "faults": [fault]}, data._File)


@pytest.mark.parametrize(
    "changes, word",
    [({"clauses": ["P99"]}, "P99"), ({"good": "p 3"}, "p 3")],
)
def test_a_catalogue_that_does_not_fit_together(changes: dict[str, object], word: str) -> None:
    with pytest.raises(CatalogueError, match=word):
        Catalogue(file(**changes))
    Catalogue(file())


def test_names() -> None:
    known = catalogue()
    assert known.select([]) == known.faults
    assert [f.id for f in known.select([FAULT])] == [FAULT]
    with pytest.raises(UnknownFault, match=FAULT):
        known.select(["measured-tent"])


def test_a_bad_name_is_one_sentence_and_exit_2(tmp_path: Path) -> None:
    done = gallocheck("history", "nothing-like-it", at=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "'nothing-like-it'" in done.stderr


def test_no_registry_is_one_sentence_and_exit_3(tmp_path: Path) -> None:
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "GALLOCHECK_CACHE": str(tmp_path / "cache")}
    done = gallocheck("history", FAULT, "--out", "out", at=tmp_path, **env)
    assert done.returncode == 3 and done.stderr.count("\n") == 1 and "could not be fetched" in done.stderr


def test_list(tmp_path: Path) -> None:
    done = gallocheck("history", "--list", at=tmp_path)
    assert done.returncode == 0 and all(f.id in done.stdout for f in catalogue().faults)


# -- blame -----------------------------------------------------------------------


class _Judge:
    """Fails with this clause at this step; '' does not fail."""

    def __init__(self, clause: str, step: int = 1) -> None:
        self.clause, self.step = clause, step

    def judge(self, trace: Trace, anew: bool = False) -> object:
        found = [Verdict("broken", self.clause, "m", self.step, "RESERVE")] if self.clause else []
        return Report(verdicts=found)


TRACE = Trace(Setup((), ()), (), ())


def judge(clause: str | None, step: int = 1) -> Judge | None:
    return None if clause is None else cast(Judge, _Judge(clause, step))


def blame(bad: str, good: str, *mended: str | None) -> Blame:
    return Blame(cast(Judge, _Judge(bad)), cast(Judge, _Judge(good)), frozenset({"P1"}), *map(judge, mended))


@pytest.mark.parametrize(
    "bad, good, mended, caught",
    [
        ("P1", "", (), True),
        ("", "", (), False),  # nothing is broken
        ("G1", "", (), False),  # something else is
        ("P1", "P1", (), False),  # the good release breaks it too
        ("P1", "", ("", "P1", ""), True),
        ("P1", "", ("P1", "P1", ""), True),  # another fault is there as well
        ("P1", "", ("", "", ""), True),  # it takes both
        ("P1", "", ("P1", "", ""), False),  # it is another's alone
        ("P1", "", ("P1", "P1", "P1"), False),  # it is nobody's that is known
        ("P1", "", (None, "P1", None), True),
        ("P1", "", (None, "", None), False),
        ("P1", "", ("P1", None, None), False),
    ],
)
def test_blame(bad: str, good: str, mended: tuple[str | None, ...], caught: bool) -> None:
    assert (blame(bad, good, *mended).failure(TRACE) is not None) == caught


def test_the_good_release_may_fail_later() -> None:
    later = Blame(cast(Judge, _Judge("P1", 1)), cast(Judge, _Judge("P1", 2)), frozenset({"P1"}))
    assert later.failure(TRACE) is not None


def test_a_trace_is_worth_shrinking_where_the_good_release_fails_there_by_another_clause() -> None:
    assert blame("P1", "C2").failure(TRACE, strict=False) is not None
    assert blame("P1", "C2").failure(TRACE) is None, "but what is left must get past it"


# -- a real one --------------------------------------------------------------------


def test_a_real_fault_of_an_old_release_is_caught(tmp_path: Path) -> None:
    code = job.run(console(tmp_path), [FAULT], 20, 1, tmp_path, False, False)
    said = (tmp_path / "said.txt").read_text()
    assert code == 0 and "1 of 1 caught" in said, said
    replay = load(tmp_path / f"{FAULT}.json")
    assert replay.clause == "P11" and len(replay.trace.ops) <= 3
    with judges(catalogue(), catalogue().by_id[FAULT], lambda _: None) as blame:
        assert blame.failure(replay.trace, anew=True) is not None
        # the first of 2024: no scheduler that can be looked at, no meta backend, and it says so
        assert blame.bad.caps == Cap.PLAN | Cap.NO_MEASURE and "does not measure" in blame.bad.describe


def test_a_mend_that_matches_nothing(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.c").write_text("int x;\n")
    tree = trees.Tree(tmp_path, "ggml")
    with pytest.raises(CatalogueError, match="nowhere"):
        releases._mended(tree, "p 1", [data.Mend("a.c", "nowhere", "")])
    (mended,) = releases._mended(tree, "p 1", [data.Mend("a.c", "x", "y")]).values()
    assert mended.read_text() == "int y;\n" and mended.name == "a.c"


# -- results -----------------------------------------------------------------------


def outcome(caught: bool, given: float = 5.0) -> Outcome:
    return Outcome(caught=caught, seconds=1.0, given=given, traces=1, operations=1)


def doing(done: list[str], then: Callable[[str], Outcome]) -> Callable[..., Outcome]:
    def check_one(_: object, __: object, fault: Fault, *___: object) -> Outcome:
        done.append(fault.id)
        return then(fault.id)

    return check_one


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = catalogue().faults[:2]
    done: list[str] = []

    def stopped(id_: str) -> Outcome:
        if id_ == second.id:
            raise KeyboardInterrupt
        return outcome(True)

    names = [first.id, second.id]
    monkeypatch.setattr(job, "check_one", doing(done, stopped))
    with pytest.raises(KeyboardInterrupt):
        job.run(console(tmp_path), names, 5, 1, tmp_path, False, False)
    monkeypatch.setattr(job, "check_one", doing(done, lambda _: outcome(False)))
    assert job.run(console(tmp_path), names, 5, 1, tmp_path, False, False) == 1, "one is missed"
    assert done == [first.id, second.id, second.id]
    assert job.run(console(tmp_path), names, 5, 1, tmp_path, False, False) == 1 and len(done) == 3
    job.run(console(tmp_path), names, 9, 1, tmp_path, False, False)
    assert done[3:] == [second.id], "what was missed is hunted for again where there is more time"
    job.run(console(tmp_path), names, 9, 1, tmp_path, True, False)
    assert done[4:] == names, "--fresh starts over"


def test_results_of_another_seed_are_not_used(tmp_path: Path) -> None:
    Results(tmp_path, 1, "0").add("a", outcome(True))
    assert Results(tmp_path, 1, "0").known("a", 5)
    assert Results(tmp_path, 2, "0").known("a", 5) is None
    assert Results(tmp_path, 1, "1").known("a", 5) is None


def test_results_that_are_none(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("{")
    with pytest.raises(ResultsError, match="--fresh"):
        Results(tmp_path, 1, "0")
    assert not Results(tmp_path, 1, "0", fresh=True).outcomes
