"""The pinned tree with one fault put into it, for tests of what a user's own change looks like."""

from __future__ import annotations

import shutil
from pathlib import Path

from gallocheck.native import trees
from gallocheck.native.tree_files import locked

KEPT = "    // graph outputs are never freed\n    if (node->flags & GGML_TENSOR_FLAG_OUTPUT) {"


def outputs_are_freed() -> Path:
    """P5: outputs are freed like other tensors. It is in the cache, so that it is compiled once for all tests."""
    pinned = Path(str(trees.pinned()))
    home = trees.cache_dir() / "broken" / f"{pinned.name}-P5"
    home.parent.mkdir(parents=True, exist_ok=True)
    with locked(home.parent / f".lock-{home.name}"):
        source = home / "ggml" / "src" / "ggml-alloc.c"
        if not source.is_file() or "if (0 && node" not in source.read_text():
            shutil.rmtree(home, ignore_errors=True)
            shutil.copytree(pinned, home / "ggml")
            text = source.read_text()
            assert KEPT in text
            source.write_text(text.replace(KEPT, KEPT.replace("if (node", "if (0 && node")))
    return home
