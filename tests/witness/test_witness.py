"""Z3's witnesses: every branch of the model has one or a proof that nothing takes it; all run on every subject."""

from __future__ import annotations

from collections import Counter

import pytest
from gallocheck.fuzz import expected
from gallocheck.fuzz.applies import lacking
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.subjects import resolve
from gallocheck.fuzz.witness import for_clause, for_part, unreached, witnesses
from gallocheck.fuzz.witness.kept import as_walk
from gallocheck.fuzz.witness.scenes import Stage, stages
from gallocheck.spec import branches
from gallocheck.spec.branches import Way
from gallocheck.spec.witness import AnyStep, Search, allowed, reached

STAGES: dict[str, Stage] = {stage.name: stage for stage in stages()}


# -- whole -------------------------------------------------------------------------


def test_every_branch_has_a_witness_or_a_proof() -> None:
    taken = {way for w in witnesses() for way in w.ways}
    dead = {u.goal for u in unreached() if isinstance(u.goal, Way)}
    assert not taken & dead
    arms = Counter(way.site for way in taken | dead)
    for site, many in branches.sites().items():
        assert arms[site] == many, f"{site}: python -m gallocheck.fuzz.witness finds its witnesses"
    assert all(u.proved for u in unreached()), [u for u in unreached() if not u.proved]


def test_every_clause_of_a_machine_acts() -> None:
    for stage in STAGES.values():
        for clause in stage.scene.machine.clauses:
            assert for_clause(clause), f"no witness of {clause}"
    shortest, *others = for_clause("R6")
    assert all(shortest in for_part(*part) for part in shortest.parts)
    assert "R6" in shortest.counted and shortest.trace is not None
    assert all(len(shortest.trace.ops) <= len(w.trace.ops) for w in others if w.trace and "R6" in w.counted)


@pytest.mark.parametrize("name", [s for s in STAGES if STAGES[s].scene.depth < 30])
def test_what_is_proved_dead_is(name: str) -> None:
    """The proofs again; and no proof is of something that a witness reaches."""
    stage = STAGES[name]
    step, machine = AnyStep(stage.scene.machine, stage.scene.config), stage.scene.machine.name
    dead = [u.goal for u in unreached() if u.proved and machine in u.machines]
    assert not [goal for goal in dead if stage.wants(goal) and step.reaches(goal)]
    taken = [g for w in witnesses() if w.search == name for g in (*w.ways, *w.parts)]
    assert taken and all(map(step.reaches, taken[:: len(taken) // 8 + 1]))


# -- the walks are the traces ------------------------------------------------------------


def test_walks_and_traces_are_one() -> None:
    """Every walk again over ints, and every trace on the reference: what is said to be reached is."""
    for witness in witnesses():
        stage = STAGES[witness.search]
        walk = as_walk(stage.scene.machine, witness)
        assert {*witness.ways, *witness.parts} <= reached(stage.scene.machine, walk), witness.walk
        assert allowed(stage.scene, walk), witness.walk
        made = stage.scene.accept(walk)
        assert made is not None and (made.trace, made.step) == (witness.trace, witness.step), witness.walk
        assert not witness.taken or set(witness.ways) <= made.ways, witness.walk


#: search -> the longest walk whose parts are looked for again
SAMPLE = {"resizable": 3, "scheduler": 2, "pools": 2, "server": 3, "captures": 3, "contexts": 3}


@pytest.mark.parametrize("name", SAMPLE)
def test_z3_finds_a_sample_again(name: str) -> None:
    """Three parts of clauses, by walks that are no shorter and no longer."""
    short = [w for w in witnesses() if w.search == name and len(w.walk) <= SAMPLE[name] and w.parts]
    wanted = {w.parts[0]: len(w.walk) for w in sorted(short, key=lambda w: len(w.walk))[-3:]}
    found = {}
    for one in Search(STAGES[name].scene, lambda goal: goal in wanted).run():
        found |= {goal: len(one.trace.ops) for goal in one.goals}
        if len(found) == len(wanted):
            break
    assert len(wanted) == 3 and found == wanted


# -- on every subject -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bundled", "light", "ggml", "ggml-resizable", "ggml-group"])
def test_on_a_subject(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing fails but what the subject is known for. Run with -s to see how many witnesses apply."""
    if name == "light":
        monkeypatch.setenv("GALLOCHECK_DRIVER", "light")
    subject = resolve("bundled" if name == "light" else name, None, lambda text: None)
    with Judge(subject.library) as judge:
        known = expected.for_subject(subject.name, judge.describe, None, False)
        run, bad = 0, []
        for witness in witnesses():
            if witness.trace is None or lacking(witness.trace, judge.caps):
                continue
            run += 1
            failed = judge.quickly(witness.trace).failed
            if failed is not None and known.find(failed.signature) is None:
                bad.append((witness.search, witness.walk, str(failed)))
    print(f"{name}: {run} of {len(witnesses())} witnesses")
    assert not bad, bad[:3]
    assert run > 50
