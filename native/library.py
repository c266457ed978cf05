"""Where the subject libraries that come with gallocheck lie."""

from __future__ import annotations

import sys
from pathlib import Path


def library_path(name: str) -> Path:
    """The library `name` ('bundled' or 'planted') of this installation; it may not exist."""
    suffix = ".dylib" if sys.platform == "darwin" else ".so"
    return Path(__file__).parent / "lib" / f"libgallocheck_{name}{suffix}"
