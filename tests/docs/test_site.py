"""The site as a whole: built from the project, without a warning, every clause told, every link leading somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import gallocheck.model
import pytest
from gallocheck.fuzz.catalogue import DEFECTS, SCHED_DEFECTS
from gallocheck.spec.branches import sites
from gallocheck.spec.clauses import CLAUSES, clause
from gallocheck.spec.machines import MACHINES
from generate import clauses, links, proofs
from generate.rules import machines_of

from .commands import ROOT

HEADINGS = ["The model's code", "Sequences that make it act", "Planted defects", "Where it is checked"]


def build(out: Path) -> None:
    """The site's sources and its HTML. The prover alone is left out: it has tests of its own."""
    root = Path(str(gallocheck.model.__file__)).parents[2]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    commands = [
        ["-m", "generate", out / "sources", "--without-proofs"],
        ["-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going", out / "sources", out / "html"],
    ]
    for command in commands:
        done = subprocess.run(
            [sys.executable, *map(str, command)],
            cwd=ROOT / "docs/site",
            env=env,
            capture_output=True,
            text=True,
            timeout=500,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_whole_site(tmp_path: Path) -> None:
    """One test, since the site is built once for all that is asked of it."""
    build(tmp_path)
    assert links.broken(tmp_path / "html") == []
    every_clause_is_told(tmp_path)
    every_machine_and_every_branch(tmp_path)
    nothing_is_loaded_from_elsewhere(tmp_path)


def every_clause_is_told(built: Path) -> None:
    for c in CLAUSES:
        text = (built / "sources" / "clauses" / f"{c.id}.md").read_text()
        wanted = [
            *HEADINGS,
            *(["The property", "The rule's code"] if machines_of(c.id) else ["What checks it"]),
        ]
        assert c.statement in text and [h for h in wanted if f"## {h}" not in text] == [], c.id
        defects = [d.number for d in (*DEFECTS, *SCHED_DEFECTS) if d.clause == c.id]
        assert defects and [n for n in defects if f"### Defect {n}:" not in text] == [], c.id
        assert text.count("<svg ") == 1 + len(defects)


def every_machine_and_every_branch(built: Path) -> None:
    for m in MACHINES:
        assert (built / "html" / "machines" / f"{proofs.slug(m)}.html").is_file()
    folder = built / "sources" / "branches"
    told = sum(len(re.findall(r"^## .*line \d+$", p.read_text(), re.M)) for p in folder.glob("*.md"))
    assert told == len(sites())


def nothing_is_loaded_from_elsewhere(built: Path) -> None:
    for path in (built / "html").rglob("*.html"):
        assert not re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="https?:', path.read_text()), path.name


def test_a_proof_is_told_with_its_time() -> None:
    c = clause("T1")
    text = "\n".join(clauses.proof_section(c, proofs.proved([c.id])))
    assert re.search(r"Proved in \d+\.\d\d s", text) and "| proved |" in text
    assert all(name in text for name in proofs.assumed(machines_of(c.id)[0]).invariants)


def test_nothing_is_told_of_a_clause_that_nobody_proved() -> None:
    with pytest.raises(KeyError):
        "\n".join(clauses.proof_section(clause("T1"), {}))


def test_a_clause_without_a_defect_has_no_page() -> None:
    with pytest.raises(ValueError, match="P1 has no planted defect"):
        list(clauses.defect_section(clause("P1"), []))
