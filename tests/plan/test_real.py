"""The hook in a real program on a real tree, and what its dumps are judged to be."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from gallocheck.fuzz.dump.judge import judge
from gallocheck.fuzz.dump.lines import read

from tests.plan.conftest import Kitchen, dump_of

#: a parent is free for others while one reader of it is left
EARLY = (
    "            p_hn->n_children -= 1;\n",
    """            p_hn->n_children -= 1;
            if (p_hn->n_children == 1 && p_hn->allocated && !(parent->flags & 3) && !parent->view_src) {
                ggml_gallocr_free_node(galloc, parent);
                p_hn->allocated = true;
                p_hn->n_views  += 1000;
            }
""",
)
#: in place whoever else reads the parent
SHARED = ("if (p_hn->n_children == 1 && p_hn->n_views == 0) {", "if (p_hn->n_views == 0) {")
#: no offset is aligned
UNALIGNED = ("    size = aligned_offset(NULL, size, alloc->alignment);\n\n    AT_PRINTF(\"%s: alloc",
             "    size += 4;\n\n    AT_PRINTF(\"%s: alloc")  # fmt: skip


def test_a_right_program_on_a_right_tree(kitchen: Kitchen, tmp_path: Path) -> None:
    found = judge(read(dump_of(kitchen.wrapped(None), "good", tmp_path / "dump")))
    assert not found.findings and not found.unclear
    assert (found.binds, found.computes) == (2, 2)
    assert all(
        found.exercised[c] for c in ("P1", "P2", "P3", "P6", "P7", "P8", "P9", "P11", "P14", "G5", "R12")
    )


def test_threads_with_an_allocator_each(kitchen: Kitchen, tmp_path: Path) -> None:
    """Every line is whole, and each call's buffers are its own allocator's."""
    dump = read(dump_of(kitchen.wrapped(None), "threads", tmp_path / "dump"))
    found = judge(dump)
    assert not dump.cut and not found.findings and not found.unclear
    assert (found.binds, found.computes, found.exercised["G5"]) == (120, 120, 120)


def test_a_program_that_computes_what_is_gone(kitchen: Kitchen, tmp_path: Path) -> None:
    """The new buffer's struct has the old one's address, mostly: the hook tells them apart all the same."""
    found = judge(read(dump_of(kitchen.wrapped(None), "stale", tmp_path / "dump")))
    assert [f.clause for f in found.findings] == ["R12"]
    assert "'early' (MUL_MAT)" in found.findings[0].message


@pytest.mark.parametrize(("fault", "clause"), [(EARLY, "P1"), (SHARED, "P8"), (UNALIGNED, "P2")])
def test_a_fault_in_the_tree_is_found_in_its_dump(
    kitchen: Kitchen, tmp_path: Path, fault: tuple[str, str], clause: str
) -> None:
    found = judge(read(dump_of(kitchen.wrapped(fault), "good", tmp_path / "dump")))
    assert found.findings and {f.clause for f in found.findings} == {clause}


def test_before_a_shared_library(kitchen: Kitchen, tmp_path: Path) -> None:
    program, hook = kitchen.shared()
    whole = dump_of(program, "good", tmp_path / "dump", LD_PRELOAD=str(hook))
    inside = dump_of(kitchen.wrapped(None), "good", tmp_path / "inside")
    kinds = [[type(line).__name__ for _, line in read(path).lines] for path in (whole, inside)]
    assert kinds[0] == kinds[1]
    assert not judge(read(whole)).findings


def test_without_the_variable_nothing_is_written(kitchen: Kitchen, tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if k != "GALLOCHECK_PLAN"}
    done = subprocess.run(
        [kitchen.wrapped(None), "good"], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=20
    )
    assert done.stdout == "done\n" and not done.stderr and not list(tmp_path.iterdir())


def test_where_it_cannot_be_written_the_program_goes_on(kitchen: Kitchen, tmp_path: Path) -> None:
    env = {**os.environ, "GALLOCHECK_PLAN": str(tmp_path / "no" / "dump")}
    done = subprocess.run(
        [kitchen.wrapped(None), "good"], env=env, capture_output=True, text=True, timeout=20
    )
    assert done.stdout == "done\n" and "cannot be written" in done.stderr
