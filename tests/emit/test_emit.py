"""Emitted programs: red on the tree that failed, green on an allocator that is right, and nothing in them in vain."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from gallocheck.fuzz import emit
from gallocheck.fuzz.emit import EmitError, emit_cpp
from gallocheck.fuzz.emit_checks import candidates
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.replay import Replay
from gallocheck.fuzz.subjects import Subject
from gallocheck.model.records import Graph, Kind, Op, Tensor, Trace
from gallocheck.native import tree_files, trees
from gallocheck.native.library import library_path
from gallocheck.native.tree_program import Bench, execute

from .cases import CASES, NEW, ONE, Case, node


@pytest.fixture(scope="module")
def tree() -> trees.Tree:
    return trees.pinned()


@pytest.fixture(scope="module")
def plain(tree: trees.Tree) -> Subject:
    return Subject("ggml", str(trees.build(tree)), str(tree))


@pytest.fixture(scope="module")
def judge(plain: Subject) -> Iterator[Judge]:
    with Judge(plain.library) as judge:
        yield judge


@pytest.fixture(scope="module")
def benches(tree: trees.Tree) -> dict[str, Bench]:
    return {variant: Bench(tree, variant) for variant in ("plain", "resizable")}


def saved(trace: Trace, clause: str, message: str, step: int | None = None) -> Replay:
    """As the hunt saves it."""
    at = len(trace.ops) - 1 if step is None else step
    return Replay(clause, "broken", message, "ggml 0.15.3", trace, at, "0.1.0", 1)


def code(text: str) -> str:
    """Without comments."""
    return "\n".join(line.split("//")[0] for line in text.splitlines())


# -- the pinned release ----------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_shows_what_the_judge_saw(
    case: Case, plain: Subject, judge: Judge, benches: dict[str, Bench]
) -> None:
    failed = judge.judge(case.trace, anew=True).failed
    assert failed is not None and failed.clause == case.clause
    text = emit_cpp(saved(case.trace, failed.clause, failed.message, failed.step), plain)
    seen = benches["plain"].try_out(text[text.index("#include") :])
    assert seen.red and case.ends in str(seen)
    last = [line for line in seen.errors.splitlines() if line[0].isdigit()][-1]
    assert last.startswith(f"{failed.step}. ") or seen.code == 1
    head = " ".join(line[3:] for line in text.split("\n\n")[0].splitlines())
    assert (
        f"red on ggml 0.15.3 (exit {seen.code}" in head and "green on ggml 0.15.3 with the overlay." in head
    )
    assert head.startswith(f"{case.clause}, ") and failed.message[:40] in head


def test_its_head_has_the_command_that_builds_it(plain: Subject, tree: trees.Tree, tmp_path: Path) -> None:
    """Without cmake, beside the tree's sources."""
    text = emit_cpp(saved(CASES[0].trace, "G2", "touched memory that is not mapped"), plain)
    (tmp_path / "program.cpp").write_text(text)
    for name in ("include", "src"):
        (tmp_path / name).symlink_to(tree.root / name)
    (command,) = [line.removeprefix("//").strip() for line in text.splitlines() if "-o program" in line]
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True, timeout=120)
    assert execute(tmp_path / "program", 20).red


def test_only_what_is_needed(plain: Subject, benches: dict[str, Bench]) -> None:
    text = emit_cpp(saved(CASES[0].trace, "G2", "touched memory that is not mapped"), plain)
    assert benches["plain"].try_out(text).red  # its head and all
    crash = code(text)
    for word in (
        "check_",
        "expect(",
        "weight",
        "view(",
        "input(",
        "alloc_size",
        "fail_in",
        "max_size",
        "sched",
    ):
        assert word not in crash, word
    assert "capacity" in crash and "g.node(" in crash
    assert len(crash.splitlines()) < 220


def test_names_tell_what_tensors_are(plain: Subject) -> None:
    case = next(c for c in CASES if c.clause == "P5")
    text = emit_cpp(saved(case.trace, "P5", "tensor 3 overlaps tensor 0"), plain)
    assert 'ggml_tensor * n0 = g.node("n0", 64, {});' in text
    assert 'ggml_tensor * out_view1 = g.view("out_view1", n0, 64, 0);' in text
    assert "ggml_set_output(out_view1);" in text


def test_death_counts_only_where_it_was(plain: Subject) -> None:
    """The reserve before does no harm: a program that dies later is not the one that was asked for."""
    trace = CASES[0].trace
    text = emit_cpp(saved(trace, "G2", "touched memory that is not mapped", step=2), plain)
    assert text.index("// this is where it goes wrong") < text.index('step("2. alloc')
    with pytest.raises(EmitError, match=r"not red on ggml 0\.15\.3"):
        emit_cpp(saved(trace, "G2", "touched memory that is not mapped", step=0), plain)


# -- where there is no program ---------------------------------------------------------


def refused(replay: Replay, target: Subject, *words: str) -> None:
    """One sentence with these words, exit code 3."""
    with pytest.raises(EmitError) as error:
        emit_cpp(replay, target)
    text = str(error.value)
    assert error.value.exit_code == 3 and "\n" not in text and text.endswith(".")
    for word in words:
        assert word in text, text


def test_a_failure_that_the_tree_does_not_show(plain: Subject) -> None:
    trace = Trace(ONE, (node(64),), (NEW, Op(Kind.RESERVE), Op(Kind.ALLOC)))
    refused(saved(trace, "P1", "tensor 1 overlaps tensor 0"), plain, "not red on ggml 0.15.3")


def test_what_ggml_has_no_call_for(plain: Subject) -> None:
    remake = Trace(ONE, (node(64),), (NEW, Op(Kind.OWN), Op(Kind.REMAKE), Op(Kind.RESERVE)))
    refused(saved(remake, "R14", "the borrower keeps its buffers"), plain, "no call")
    resizable = replace(plain, name="ggml-resizable")
    refused(saved(remake, "R3", "type 0: at least the maximum"), resizable, "no call")
    refused(saved(remake, "R13", "every byte counted once"), plain, "no call")


def test_what_the_tree_has_no_call_for(plain: Subject, tmp_path: Path) -> None:
    pair = Trace(ONE, (node(64),), (NEW, Op(Kind.OWN), Op(Kind.RESERVE)))
    refused(
        saved(pair, "R3", "type 0: at least the maximum"), plain, "ggml 0.15.3", "--subject ggml-resizable"
    )
    measure = next(c for c in CASES if c.clause == "G3")
    fake = emit.Tree("ggml 0.9.4", False, False, 5, "", False)
    with pytest.raises(EmitError, match=r"ggml 0\.9\.4 has no call"):
        emit.program(emit.Candidate(measure.trace, 1), fake)


def test_what_no_clause_decides(plain: Subject) -> None:
    silent = replace(saved(CASES[0].trace, "", "generation differs"), verdict="silent")
    refused(silent, plain, "no clause is broken")


def test_a_program_that_does_not_compile_is_one_sentence(benches: dict[str, Bench]) -> None:
    with pytest.raises(tree_files.TreeError, match=r"does not compile against ggml 0\.15\.3") as error:
        benches["plain"].try_out("int main() { return nothing; }")
    assert error.value.code == 3 and "nothing" in str(error.value)


# -- failures of the bundled allocator -------------------------------------------------

BUNDLED = Subject("planted", str(library_path("planted")))
GROWS = Trace(
    ONE,
    (node(64), node(640)),
    (NEW, Op(Kind.OWN), Op(Kind.NEW, 1), Op(Kind.BORROW, 1), Op(Kind.RESERVE), Op(Kind.RESERVE, 1, graph=1)),
)


def test_green_on_ggml_is_no_error() -> None:
    trace = Trace(ONE, (Graph((Tensor(64), Tensor(64, (0,)))),), (NEW, Op(Kind.RESERVE)))
    text = emit_cpp(saved(trace, "P1", "tensor 1 overlaps tensor 0"), BUNDLED)
    head = " ".join(line[3:] for line in text.split("\n\n")[0].splitlines())
    assert "This program is green on ggml 0.15.3, green on ggml 0.15.3 with the overlay." in head


def test_red_on_ggml_is_said() -> None:
    text = emit_cpp(saved(CASES[0].trace, "G2", "touched memory that is not mapped"), BUNDLED)
    assert "red on ggml 0.15.3 (exit 139" in text


def test_plain_allocators_become_owners_where_they_have_to_be_read() -> None:
    trace = Trace(ONE, (node(64), node(640)), (NEW, Op(Kind.RESERVE), Op(Kind.RESERVE, graph=1)))
    text = emit_cpp(saved(trace, "R7", "owner: up when a buffer goes"), BUNDLED)
    assert "ggml_gallocr_set_resizable(galloc0, NULL)" in text
    assert "get_state(galloc0).generation > before0.generation" in text


def test_chunks_of_no_bytes_cannot_be_seen() -> None:
    trace = replace(GROWS, graphs=(Graph((Tensor(0), Tensor(64))), node(640)))
    refused(saved(trace, "R3", "type 0: at least the maximum"), BUNDLED, "chunks of no bytes")


#: by clause: a line of the overlay, what a broken allocator has instead, the judge's message, the program's
BROKEN = {
    "R3": (
        "want[c] = m->required[i][c] > want[c] ?",
        "want[c] = m->required[i][c] ?",
        "type 0: at least the maximum",
        "buffers of T0 are {640} bytes (they are {64})",
    ),
    "R7": (
        "m->generation += index_of(m, e) >= 0;",
        "(void) m;",
        "owner: up when a buffer goes",
        "the generation that galloc0 reads goes up (from 0 to 0)",
    ),
}


@pytest.mark.parametrize("clause", BROKEN)
def test_red_on_a_broken_pair(
    clause: str, tree: trees.Tree, benches: dict[str, Bench], tmp_path: Path
) -> None:
    """The same program on the overlay as it is, and with one line of it broken."""
    line, instead, message, said = BROKEN[clause]
    right = benches["resizable"]
    with Judge(str(trees.build(tree, "resizable"))) as judge:
        candidate = next(candidates(saved(GROWS, clause, message), judge.caps, judge.fresh))
    text = emit.program(candidate, emit.declared(right))
    assert text is not None and not right.try_out(text).red
    seen = with_changed(right, "roles.c", line, instead, tmp_path).try_out(text)
    assert seen.code == 1 and said in seen.said


def with_changed(right: Bench, name: str, line: str, instead: str, folder: Path) -> Bench:
    """The overlay with one line of one source changed."""
    other = Bench(right.tree, right.variant)
    at = next(i for i, unit in enumerate(other.units) if unit.source.name == name)
    unit = other.units[at]
    source = unit.source.read_text()
    assert source.count(line) == 1
    (folder / name).write_text(source.replace(line, instead))
    command = [*unit.command, f"-I{unit.source.parent}", "-c", str(folder / name), "-o", str(folder / "o")]
    assert tree_files.run(command).returncode == 0
    other.objects[at] = folder / "o"
    return other
