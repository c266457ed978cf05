"""The real driver's side without a card: a fake libcuda.so.1 on the emulator, and what is said where there is none."""

from __future__ import annotations

import ctypes
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from gallocheck.fuzz.draw import RandomDraw
from gallocheck.fuzz.profiles import SOURCES
from gallocheck.model.records import Observation
from gallocheck.native.header import SubjectError
from gallocheck.native.library import library_path
from gallocheck.native.worker import Worker

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "native"


def has_card() -> bool:
    try:
        return ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    except OSError:
        return False


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a libcuda.so.1."""
    folder = tmp_path_factory.mktemp("fake")
    sources = [NATIVE / "tests/fake/libcuda.cpp", *sorted(NATIVE.glob("driver/emulated*.cpp"))]
    places = [f"-iquote{NATIVE / part}" for part in ("driver", "include", "bundled")]
    flags = ["-std=c++20", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread"]
    compiler = os.environ.get("CXX", "c++")
    command = [compiler, *flags, *places, *map(str, sources), "-o", str(folder / "libcuda.so.1")]
    subprocess.run(command, check=True, timeout=300)
    return folder


def test_traces_look_the_same_on_a_card(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = library_path("bundled")
    with Worker(library, timeout=60) as emulated:
        monkeypatch.setenv("GALLOCHECK_DRIVER", "cuda")
        monkeypatch.setenv("LD_LIBRARY_PATH", str(fake))
        with Worker(library, timeout=60) as card:
            assert "a card that is none" in card.describe
            for number in range(3):
                for profile, source in SOURCES.items():
                    trace = source.draw(RandomDraw(number), emulated.capabilities)
                    a, b = emulated.run(trace), card.run(trace)
                    where = f"{profile} {number}"
                    assert [without_addresses(s.obs) for s in a.steps] == [
                        without_addresses(s.obs) for s in b.steps
                    ], where
                    assert (a.leaked, a.death and a.death.kind) == (b.leaked, b.death and b.death.kind), where


def without_addresses(obs: Observation) -> Observation:
    """Pools lie elsewhere in another driver's memory."""
    return replace(
        obs, base=int(obs.base != 0), address=obs.address and obs.address - obs.base if obs.base else 0
    )


@pytest.mark.skipif(has_card(), reason="there is a GPU here")
def test_without_a_gpu_it_says_so_and_exits_3() -> None:
    done = subprocess.run(["sh", str(NATIVE / "gpu_check.sh")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert done.stdout.count("\n") == 1 and "GPU" in done.stdout and not done.stderr


def test_the_kernels_are_compiled_or_it_is_said_that_they_are_not() -> None:
    check = ["python3", str(NATIVE / "driver/make_ptx.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    without = subprocess.run(
        check, capture_output=True, text=True, env={**os.environ, "NVCC": "no-nvcc-here"}
    )
    assert without.returncode == 0 and "skipped" in without.stdout


@pytest.mark.parametrize("driver, said", [("cuda", "libcuda.so.1"), ("nonsense", "light or cuda")])
def test_a_driver_that_there_is_not_is_one_sentence(
    driver: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if driver == "cuda" and has_card():
        pytest.skip("there is a GPU here")
    monkeypatch.setenv("GALLOCHECK_DRIVER", driver)
    with pytest.raises(SubjectError, match=said):
        Worker(library_path("bundled"))
