"""What an installation must carry beside its Python: libraries, headers, sources to build from, kept data."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points, requires, version
from pathlib import Path

import pytest
from gallocheck.fuzz import canary, catalogue, expected, shortest
from gallocheck.native.header import FUNCTIONS, HEADER, load
from gallocheck.native.library import library_path

ROOT = Path(canary.__file__).resolve().parent.parent
CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["bundled", "planted"])
def test_the_subject_libraries(name: str) -> None:
    """They load, and export the interface and nothing else of ours."""
    lib = load(library_path(name))
    assert lib.gc_abi() > 0
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", library_path(name)], capture_output=True, text=True
    )
    names = {line.split()[-1] for line in listed.stdout.splitlines() if line.split()[-2] in "TBDR"}
    assert names == set(FUNCTIONS)


def test_the_sources_that_a_tree_is_built_with() -> None:
    for name in (
        "include/gallocheck.h",
        "include/gc_oracle.h",
        "ggml/adapter.cpp",
        "ggml/probes",
        "hook/gallocheck_hook.c",
        "hook/wrap.args",
        "bundled/defects.inc",
    ):
        assert (ROOT / "native" / name).exists(), name
    assert HEADER.is_file() and all(file.is_file() for file in catalogue.FILES)


def test_the_kept_data() -> None:
    assert len(list(canary.FOLDER.glob("*.json"))) == len(catalogue.DEFECTS) + len(catalogue.SCHED_DEFECTS)
    for path in expected.KNOWN.glob("*.json"):
        for entry in expected.load(path).findings:
            assert (path.parent / entry.replay).is_file(), entry.id


def test_the_pages_parts() -> None:
    for name in ("picture.css", "page.css", "page.js", "page.html.j2"):
        assert (ROOT / "report" / name).is_file(), name


def test_the_suite_is_a_plugin_of_pytest() -> None:
    found = [entry.value for entry in entry_points(group="pytest11") if entry.name == "gallocheck"]
    assert found == ["gallocheck.suite.plugin"]
    assert (ROOT / "suite" / "test_clauses.py").is_file() and shortest.FILE.is_file()


def test_what_is_needed_is_named() -> None:
    """Every distribution that the rooms import is a dependency, and none is there for nothing."""
    text = "\n".join(p.read_text() for room in ("model", "spec", "native", "fuzz", "scenario", "report", "cli", "suite")
                     for p in (ROOT / room).rglob("*.py"))  # fmt: skip
    imported = re.findall(r"^\s*(?:import (\w+)|from (\w+)[\w.]* import)", text, re.M)
    used = {a or b for a, b in imported} - set(sys.stdlib_module_names)
    modules = {"z3-solver": "z3", "scikit-build-core": "scikit_build_core"}
    needed = {re.split(r"[^\w-]", r)[0].lower() for r in requires("gallocheck") or []}
    named = {modules.get(n, n) for n in needed}
    assert used <= named
    assert named - used <= {"scikit_build_core"}  # builds the pinned release's metadata, not imported
    assert re.fullmatch(r"\d+\.\d+\.\d+", version("gallocheck"))


def test_the_command_is_installed() -> None:
    script = Path(sys.executable).with_name("gallocheck")
    done = subprocess.run([script, "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "graph allocator" in done.stdout


def test_files_are_small_rooms() -> None:
    """No file that somebody wrote has more than 400 lines; kernels.ptx.h is generated, and the hook is
    one file for people to take along."""
    ours = [p for kind in ("py", "cpp", "h", "c") for room in ("model", "spec", "native", "fuzz", "cli", "suite", "tests")
            for p in (CHECKOUT / room).rglob(f"*.{kind}")
            if p.name not in ("kernels.ptx.h", "gallocheck_hook.c")]  # fmt: skip
    long = {p.relative_to(CHECKOUT).as_posix(): n for p in ours if (n := p.read_text().count("\n")) > 400}
    assert long == {}
