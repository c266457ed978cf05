"""Every command in the docs can be typed as it stands, and is run: here, or by a test that is named here."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click
import pytest
import typer
from gallocheck.cli.main import app

from .commands import ROOT, Command, collected, inline


class Here(NamedTuple):
    """Run here: what it may exit with."""

    codes: tuple[int, ...] = (0,)


#: how commands are run, by pattern, the first that fits: here, or in which test
HOW: list[tuple[str, Here | str]] = [
    (r"gallocheck doctor", Here()),
    (r"gallocheck check --time 10s", "tests/cli/test_commands.py"),
    (r"gallocheck check [A-Z]\d+ --defect \d+ --(time|traces) .*", Here((1,))),
    (r"gallocheck explain \w+", Here()),
    (r"gallocheck history --list", Here()),
    (r"gallocheck mutate --file pair.cpp --list", Here()),
    (r"gallocheck replay fuzz/canaries/\S+ --defect \d+( --plot \S+)?", Here((1,))),
    (r"gallocheck replay fuzz/canaries/\S+ --emit cpp > \S+", Here()),
    (r"GALLOCHECK_DRIVER=cuda gallocheck check .*", "tests/native/test_card.py"),
    (r"gallocheck check --subject ggml --source \S+ --baseline .*", "tests/cli/test_baseline.py"),
    (r"gallocheck check --subject ggml-resizable .*", "tests/ggml/test_resizable.py"),
    (r"gallocheck check --subject ./libmine.so.*", "tests/native/test_binding.py"),
    (r"gallocheck replay \S+ --step", "tests/report/test_commands.py"),
    (r"gallocheck replay \S+( --subject ggml --source \S+)? --plot .*", "tests/report/test_commands.py"),
    (r"gallocheck replay \S+ --subject ggml --source \S+ --emit cpp .*", "tests/emit/test_emit.py"),
    (r"gallocheck replay \S+ --subject ggml --source \S+", "tests/ggml/test_findings.py"),
    (r"gallocheck report .*", "tests/report/test_commands.py"),
    (r"gallocheck fuzz --cluster .*", "tests/campaign/test_cluster.py"),
    (r"gallocheck fuzz .*", "tests/campaign/test_command.py"),
    (r"gallocheck prove .*", "tests/proof/test_prover.py"),
    (r"gallocheck compare .*", "tests/plan/test_compare.py"),
    (r"gallocheck plan .*", "tests/plan/test_docs.py"),
    (r"gallocheck history( .*)?", "tests/history/test_history.py"),
    (r"gallocheck mutate( .*)?", "tests/mutate/test_command.py"),
    (r"pytest --pyargs gallocheck.suite .*", "tests/suite/test_suite.py"),
    (r"python -m gallocheck.fuzz.canary \d+", "tests/defects/test_canary.py"),
    (r"pip install atheris && .*", "tests/guidance/test_target.py"),
    (r"pip install hypofuzz && .*", "tests/guidance/test_whole_check.py"),
    (
        r"pip install (~/src/gallocheck|PATH_OF_GALLOCHECK|'PATH_OF_GALLOCHECK\[cluster\]')",
        "tests/packaging/test_contents.py",
    ),
    (r"make gpu-check", "tests/native/test_card.py"),
    (r"make docs", "tests/docs/test_site.py"),
    (r"make (check|test|bench|screenshots)", "Makefile"),
]

COMMANDS = collected()


def bare(text: str) -> str:
    """Without the folder of the program."""
    return re.sub(r"(?<!\S)\S*/(?=gallocheck |pytest )", "", text)


def how(command: Command) -> Here | str | None:
    text = bare(command.text)
    return next((what for pattern, what in HOW if re.fullmatch(pattern, text)), None)


def test_there_are_commands() -> None:
    pages = {c.page for c in COMMANDS}
    assert len(COMMANDS) > 40 and {"README.md", "docs/site/pages/tutorial.md"} <= pages


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: f"{c.page}:{c.line}")
def test_is_run_somewhere(command: Command) -> None:
    what = how(command)
    assert what is not None, f"{command.text}: no pattern in HOW says how this command is run; add one"
    if isinstance(what, str):
        assert (ROOT / what).is_file(), f"{command.text} is to be run by {what}, which is not there"


@pytest.mark.parametrize("command", [*COMMANDS, *inline()], ids=lambda c: f"{c.page}:{c.line}")
def test_can_be_typed(command: Command) -> None:
    """Its command, options and numbers are known to the command line."""
    words = shlex.split(bare(command.text.split(" > ")[0]).split(" && ")[0])
    if "gallocheck" not in words or words[0] == "pip":
        return
    words = words[words.index("gallocheck") + 1 :]
    words = [
        w for w in words if not w.startswith("[") and w not in ("…", "...", "CLAUSE…]")
    ]  # [CLAUSE...]: of a synopsis
    group = typer.main.get_command(app)
    try:
        group.make_context("gallocheck", words).close()
        name, sub, rest = group.resolve_command(click.Context(group), words)  # type: ignore[attr-defined]
        sub.make_context(name, rest or [], resilient_parsing=not rest).close()
    except Exception as error:  # click's own copy in Typer has other classes
        pytest.fail(
            f"{command.page} line {command.line}: `{command.text}`: {getattr(error, 'message', error)}"
        )


PAGES = sorted({c.page for c in COMMANDS if isinstance(how(c), Here)})
_MAIN = """gallocheck() { "$PYTHON" -c "from gallocheck.cli.main import run; run()" "$@"; }\n"""


@pytest.mark.parametrize("page", PAGES)
def test_runs(page: str, tmp_path: Path) -> None:
    """The commands of a page, in its order, in a folder that has what the project has."""
    (tmp_path / "fuzz").symlink_to(ROOT / "fuzz")
    env = {**os.environ, "PYTHON": sys.executable, "COLUMNS": "200"}
    for command in COMMANDS:
        what = how(command)
        if command.page == page and isinstance(what, Here):
            text = bare(command.text)
            done = subprocess.run(
                ["bash", "-c", _MAIN + text],
                cwd=tmp_path,
                env=env,
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert done.returncode in what.codes, f"{text}\n{done.stdout}{done.stderr}"
            assert "Traceback" not in done.stderr
