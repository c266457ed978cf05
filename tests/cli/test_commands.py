"""The commands as a user runs them: what they print, and their exit codes."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from gallocheck.fuzz.applies import applies
from gallocheck.fuzz.canary import path_of
from gallocheck.fuzz.catalogue import DEFECTS, SCHED_DEFECTS
from gallocheck.fuzz.replay import load
from gallocheck.fuzz.shortest import shortest_exercise
from gallocheck.fuzz.words import describe_op
from gallocheck.native.binding import Library
from gallocheck.native.library import library_path
from gallocheck.scenario.catalogue import SCENARIOS
from gallocheck.spec.clauses import CLAUSES
from gallocheck.spec.machines import MACHINES
from gallocheck.spec.why import why

from tests.native import toys

from .running import gallocheck

HELD = [c.id for c in CLAUSES if applies(c.id, Library(library_path("bundled")).capabilities)]


def rows(text: str) -> dict[str, tuple[int, str]]:
    """The table of a check: (exercised, verdict) by clause."""
    found = re.findall(r"^([A-Z]\d+)  .*?  +(\d+)  (.*?) *$", text, re.M)
    return {clause: (int(times), verdict) for clause, times, verdict in found}


# -- check -------------------------------------------------------------------------------


def test_check_of_the_bundled_allocator(tmp_path: Path) -> None:
    """Every clause of every letter is exercised and holds."""
    done = gallocheck("check", "--traces", 250, "--time", "100s", "--seed", 3, "--out", "found", at=tmp_path)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stdout + done.stderr
    table = rows(done.stdout)
    assert list(table) == HELD
    assert [c for c, (times, verdict) in table.items() if not times or verdict != "holds"] == []
    assert re.search(r"subject +bundled: ", done.stdout) and re.search(r"seed +3$", done.stdout, re.M)
    assert f"canaries  {len(HELD)} planted defects found" in done.stdout
    assert re.search(r"^\d+ operations in 250 traces", done.stdout, re.M)
    assert [p.name for p in (tmp_path / "found").iterdir()] == ["check.json"], (
        "nothing was found: only the record"
    )


def test_a_seed_repeats_a_check(tmp_path: Path) -> None:
    runs = [gallocheck("check", "P1", "--traces", 10, "--seed", seed, at=tmp_path) for seed in (5, 5, 6)]
    tables = [rows(done.stdout) for done in runs]
    assert tables[0] == tables[1] != tables[2]


def test_clauses_can_be_named_in_any_way(tmp_path: Path) -> None:
    done = gallocheck("check", "r", "g3", "P1", "R1", "--traces", 60, "--seed", 3, at=tmp_path)
    assert list(rows(done.stdout)) == ["P1", "G3", *(c for c in HELD if c[0] == "R")]
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_clause_that_was_not_exercised_is_not_green(tmp_path: Path) -> None:
    done = gallocheck("check", "R14", "--traces", 1, "--seed", 1, at=tmp_path)
    assert rows(done.stdout) == {"R14": (0, "not exercised")}
    assert done.returncode == 3 and "not exercised: R14" in done.stdout


CASES = {"P1": 1, "G5": 43, "R3": 52}  #: a defect of each layer that is found at once


@pytest.mark.parametrize("clause", CASES)
def test_a_planted_defect_from_check_to_replay(tmp_path: Path, clause: str) -> None:
    """Exit code 1, the clause by name, and a replay that fails there and holds on the good subject."""
    number = CASES[clause]
    args = ("check", clause, "--defect", number, "--traces", 50, "--seed", 1, "--out", "found/here")
    done = gallocheck(*args, at=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert rows(done.stdout)[clause][1].startswith("BROKEN")
    assert f"{clause} is broken at operation" in done.stdout
    assert clause == "G5" or "<- here: " in done.stdout  # G5 shows when all is over
    commands = re.findall(r"replay: gallocheck (replay \S+ --defect \d+)$", done.stdout, re.M)
    file = f"found/here/{clause}-1-1.json"
    assert f"replay {file} --defect {number}" in commands
    saved = load(tmp_path / file)
    assert (saved.clause, saved.verdict, saved.seed) == (clause, "broken", 1)

    again = gallocheck(*commands[0].split(), at=tmp_path)
    assert again.returncode == 1, again.stdout + again.stderr
    assert f"{clause} at operation {saved.step}: {saved.message}" in again.stdout
    assert "model" in again.stdout and "subject" in again.stdout
    good = gallocheck("replay", file, at=tmp_path)
    assert good.returncode == 0 and "holds: this subject does not show the fault" in good.stdout


def test_an_expected_failure_is_told_as_such(tmp_path: Path) -> None:
    """The user's own list: exit code 0 while it shows; 1, and taken off, when it is gone."""
    name = path_of(DEFECTS[0]).name
    (tmp_path / name).write_bytes(path_of(DEFECTS[0]).read_bytes())
    entry = {"id": "F1", "clause": "P1", "title": "shares bytes", "signatures": [r"P1\|.*"], "replay": name}
    wanted = {"subject": "planted", "matches": [""], "findings": [entry]}
    (tmp_path / "mine.json").write_text(json.dumps(wanted))
    args = ("check", "P1", "--traces", 50, "--seed", 1, "--out", "found", "--expected", "mine.json")
    known = gallocheck(*args, "--defect", 1, at=tmp_path)
    assert known.returncode == 0, known.stdout + known.stderr
    assert rows(known.stdout)["P1"][1] == "fails as expected (F1)"


def test_a_foreign_subject_that_fails(tmp_path: Path) -> None:
    """A library by its path: a bump allocator that knows no alignment is blamed."""
    library = toys.toy()
    done = gallocheck("check", "P2", "--subject", library, "--traces", 100, "--seed", 1, at=tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert "subject   libtoy" in done.stdout and "BROKEN" in done.stdout
    assert f"--subject {library}" in done.stdout


# -- replay ------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 38, 74], ids=["wrong plan", "abort", "fault"])
def test_a_replay_gives_the_same_verdict_every_time(tmp_path: Path, number: int) -> None:
    defect = DEFECTS[number - 1]
    done = gallocheck("replay", path_of(defect), "--defect", number, "--times", 20, at=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "20 runs: the same verdict every time" in done.stdout
    assert re.search(rf"^{defect.clause} at operation \d+: ", done.stdout, re.M)


def test_a_replay_shows_model_and_subject_up_to_where_they_part(tmp_path: Path) -> None:
    defect = next(d for d in DEFECTS if d.clause == "R5")
    saved = load(path_of(defect))
    done = gallocheck("replay", path_of(defect), "--defect", defect.number, at=tmp_path)
    numbers = [int(n) for n in re.findall(r"^│ (\d+) +│", done.stdout, re.M)]
    assert numbers == list(range(saved.step + 1))
    assert "graph 0:" in done.stdout and "type 0: alignment" in done.stdout


# -- the others --------------------------------------------------------------------------


def test_prove(tmp_path: Path) -> None:
    done = gallocheck("prove", "R6", at=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        re.search(r"R6 .*proved", done.stdout) and "1 of 1 clauses proved for unbounded sizes" in done.stdout
    )


@pytest.mark.parametrize("name", ["R6", "r6", "P13", "W1", "M3"])
def test_explain(tmp_path: Path, name: str) -> None:
    clause = next(c for c in CLAUSES if c.id == name.upper())
    done = gallocheck("explain", name, at=tmp_path)
    assert done.returncode == 0 and not done.stderr
    text = " ".join(done.stdout.split())  # lines are folded
    assert text.startswith(f"{clause.id} {clause.title}") and " ".join(clause.statement.split()) in text
    assert why(clause.id) in text and f"Checked in {clause.where}" in text
    assert all(f"the machine {m.name}" in text for m in MACHINES if clause.id in m.clauses)
    assert describe_op(shortest_exercise(clause.id).ops[-1], shortest_exercise(clause.id)) in text
    planted = [d for d in (*DEFECTS, *SCHED_DEFECTS) if d.clause == clause.id]
    assert all(f"{d.number} {d.what}" in text for d in planted)


def test_explain_knows_the_last_proof(tmp_path: Path) -> None:
    cache = {"GALLOCHECK_CACHE": str(tmp_path / "cache")}
    assert "Last here" not in gallocheck("explain", "T1", at=tmp_path, **cache).stdout
    assert gallocheck("prove", "T1", at=tmp_path, **cache).returncode == 0
    assert re.search(
        r"Last here: proved in \d+\.\d s on \d{4}-", gallocheck("explain", "T1", at=tmp_path, **cache).stdout
    )
    (tmp_path / "cache" / "proofs.json").write_text("[1]")  # nothing that it wrote
    assert gallocheck("explain", "T1", at=tmp_path, **cache).returncode == 0


def test_what_explain_says_breaks_a_clause_breaks_it(tmp_path: Path) -> None:
    text = gallocheck("explain", "R6", at=tmp_path).stdout
    command = re.search(r"replay: gallocheck (replay .*)", text)
    assert command
    done = gallocheck(*command[1].split(), at=tmp_path)
    assert done.returncode == 1 and "R6 at operation" in done.stdout


def test_defects(tmp_path: Path) -> None:
    done = gallocheck("defects", at=tmp_path)
    assert done.returncode == 0
    every = (*DEFECTS, *SCHED_DEFECTS)
    assert all(d.what in done.stdout for d in every) and f"{len(every)} defects" in done.stdout
    counts = dict(re.findall(r"\b([A-Z]\d+) (\d+)\b", done.stdout.splitlines()[-1]))
    assert {c.id: str(sum(d.clause == c.id for d in every)) for c in CLAUSES}.items() <= counts.items()
    assert "fewer than two" not in done.stdout


def test_scenario(tmp_path: Path) -> None:
    """Measured beside stated, why they differ, and a picture; as data too."""
    done = gallocheck("scenario", "peak", "pressure", "--out", "shown", at=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^saved by sharing +1,042 MiB +1,042 MiB +0 ", done.stdout, re.M)
    assert re.search(r"^independent, 818 MiB lost +out of memory +out of memory +same ", done.stdout, re.M)
    assert sorted(p.name for p in (tmp_path / "shown").iterdir()) == ["peak.png", "pressure.png"]
    data = json.loads(gallocheck("scenario", "peak", "--json", at=tmp_path).stdout)
    assert [s["name"] for s in data] == ["peak"] and data[0]["figures"][1]["measured"] == 21681
    assert data[0]["figures"][1]["difference"] == 0 and (tmp_path / "scenarios" / "peak.png").exists()
    assert len(SCENARIOS) == 7


def test_doctor(tmp_path: Path) -> None:
    """What is missing is said with its cost; what is there, with what was found."""
    done = gallocheck(
        "doctor", at=tmp_path, PATH="/nonexistent", CXX="", GALLOCHECK_CACHE=str(tmp_path / "none")
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    lines = {line.split("│")[1].strip(): line for line in done.stdout.splitlines() if line.count("│") == 4}
    assert "missing" not in lines["bundled allocator"] and "missing" not in lines["Python"]
    for name, cost in [("C++ compiler", "no ggml subject"), ("cached ggml trees", "fetches and builds")]:
        assert "missing" in lines[name] and cost in lines[name], lines[name]
    assert not (tmp_path / "none").exists()


def test_help(tmp_path: Path) -> None:
    done = gallocheck("--help", at=tmp_path)
    assert done.returncode == 0
    assert all(
        name in done.stdout
        for name in ("check", "prove", "replay", "explain", "defects", "scenario", "doctor")
    )


def test_the_version(tmp_path: Path) -> None:
    done = gallocheck("--version", at=tmp_path)
    assert done.returncode == 0 and done.stdout == f"gallocheck {version('gallocheck')}\n", done.stderr
