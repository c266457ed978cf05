"""The commands of docs/plan.md, run as they stand: from the hook's source to the judged record."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.plan.conftest import Kitchen, run

PAGE = Path(__file__).parents[2] / "docs" / "plan.md"
MAIN = 'set -e\ngallocheck() { "$PYTHON" -c "from gallocheck.cli.main import run; run()" "$@"; }\n'


def test_the_page(kitchen: Kitchen, tmp_path: Path) -> None:
    """A program beside its ggml, as a shared library and as an archive, and the commands in the page's order."""
    program, _ = kitchen.shared()
    shutil.copy(program, tmp_path / "program")
    shutil.copy(kitchen.home / "program.o", tmp_path)
    run("ar", "rcs", tmp_path / "libggml.a", kitchen.planner(None), *kitchen.parts.objects)
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    env = {**os.environ, "PYTHON": sys.executable, "GGML": str(kitchen.tree.root), "COLUMNS": "150"}
    done = subprocess.run(
        ["bash", "-c", MAIN + "".join(blocks)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert (
        "4 binds of" in done.stdout and '"broken": true' not in done.stdout
    )  # both ways in wrote to one file
    assert (tmp_path / "plan.svg").is_file()
