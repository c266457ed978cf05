"""The pytest plugin. It is loaded in every run of pytest where gallocheck is installed, so it imports nothing
and does nothing until the suite itself is asked for."""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

Failed: Any = pytest.fail.Exception
if TYPE_CHECKING:
    from .setting import Setting

SUITE = "gallocheck.suite"
MODULE = "test_clauses.py"
LETTERS = "PGRSCMVQWT"
SETTING = pytest.StashKey["Setting"]()


class Broken(Failed):
    """A clause does not hold. The text says it all."""

    __module__ = "builtins"  # as pytest's own: summaries show the text, not where this class is


class SuiteWarning(pytest.PytestWarning):
    """Something of the suite's options is of no use."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gallocheck", "gallocheck: pytest --pyargs gallocheck.suite")
    add = group.addoption
    add("--gallocheck-subject", metavar="NAME", help="bundled, ggml, ggml-resizable, or a subject library's path"
        " (default: ggml with --gallocheck-source, else bundled)")  # fmt: skip
    add("--gallocheck-source", metavar="PATH", help="a ggml or llama.cpp checkout to build the subject from")
    add("--gallocheck-baseline", metavar="PATH", help="a tree from before your change, or 'pinned': what fails"
        " there too is expected")  # fmt: skip
    add("--gallocheck-time", metavar="TIME", default="60s", help="how long in all, as 30s, 5m or 1h (60s);"
        " the workers of pytest-xdist divide it")  # fmt: skip
    add("--gallocheck-traces", metavar="N", type=int, help="stop after this many traces")
    add("--gallocheck-seed", metavar="N", type=int, help="repeat a run; printed by every run")
    add("--gallocheck-expected", metavar="FILE", help="expected failures: a clause id a line, `# reason`")
    add("--gallocheck-out", metavar="DIR", default="findings", help="where replay files go (findings)")
    add("--gallocheck-defect", metavar="N", type=int, default=0, help=argparse.SUPPRESS)


def pytest_configure(config: pytest.Config) -> None:
    for letter in LETTERS:
        config.addinivalue_line("markers", f"{letter}: clauses {letter} of gallocheck's contract")


# -- where the tests are ----------------------------------------------------------------


def clause_of(item: pytest.Item) -> str:
    """The clause that a test of the suite is about; '' where it is a test of somebody else."""
    if not isinstance(item, pytest.Function) or item.path.name != MODULE or not in_suite(item.path):
        return ""
    parameters = getattr(item, "callspec", None)
    return str(parameters.params["clause"].id) if parameters else "silent"


def in_suite(path: Path) -> bool:
    home = Path(__file__).resolve().parent
    return home in (path.resolve(), *path.resolve().parents)


def is_asked_for(config: pytest.Config) -> bool:
    """Whether the command line names the suite."""
    names = [str(arg).split("::")[0] for arg in config.args]
    return any(n == SUITE or n.startswith(SUITE + ".") or in_suite(Path(n)) for n in names)


def worker_of(config: pytest.Config) -> tuple[int, int]:
    """(number of this process among the workers of pytest-xdist, how many there are)."""
    given = getattr(config, "workerinput", None)
    if given is None:
        return 0, 1
    return int(str(given["workerid"]).removeprefix("gw")) % given["workercount"], given["workercount"]


# -- the session --------------------------------------------------------------------------


def sentences() -> tuple[type[Exception], ...]:
    """The errors that are one sentence for the user."""
    from ..fuzz.applies import NotApplicable
    from ..fuzz.duration import BadDuration
    from ..fuzz.expected import ExpectedError
    from ..fuzz.replay import ReplayError
    from ..fuzz.subjects import UnknownSubject
    from ..native.trees import TreeError
    from ..native.worker import SubjectError

    return NotApplicable, BadDuration, ExpectedError, ReplayError, UnknownSubject, TreeError, SubjectError


def setting_of(config: pytest.Config) -> Setting:
    """What this session checks; found or built the first time. Raises UsageError, one sentence."""
    if SETTING not in config.stash:
        from .setting import Setting, open_setting

        given = getattr(config, "workerinput", None)
        if given is not None and "gallocheck" not in given:
            raise pytest.UsageError("with pytest-xdist, name the suite as --pyargs gallocheck.suite")
        try:
            config.stash[SETTING] = (
                Setting.of(given["gallocheck"]) if given else open_setting(config.option, say)
            )
        except sentences() as error:
            raise pytest.UsageError(f"gallocheck: {error}") from None
        if not given:
            warn_of_the_unmatched(config)
    return config.stash[SETTING]


def say(text: str) -> None:
    print(f"gallocheck: {text}", flush=True)


def warn_of_the_unmatched(config: pytest.Config) -> None:
    """Expected failures of clauses that are not there, or that the subject is not held to."""
    from ..spec.clauses import CLAUSES

    setting = config.stash[SETTING]
    held = {c.id for c in CLAUSES if setting.applies(c.id)} | {"silent"}
    for clause, _, _, where in setting.entries:
        if clause not in held:
            text = f"{where} names {clause}, which {setting.subject} is not held to: take the line out"
            config.issue_config_time_warning(SuiteWarning(text), stacklevel=2)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """One clear failure where the subject cannot be had, before any test."""
    if is_asked_for(session.config) and not session.config.option.collectonly:
        setting_of(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """pytest-xdist: what a worker is told."""
    if SETTING in node.config.stash:
        node.workerinput["gallocheck"] = node.config.stash[SETTING].plain()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of what the subject does not offer are skipped; those that are expected to fail are marked.
    A selection of which nothing can be checked is no green run."""
    ours = [(item, clause) for item in items if (clause := clause_of(item))]
    if not ours or config.option.collectonly:
        return
    setting = setting_of(config)
    if not any(setting.applies(clause) for _, clause in ours) and not hasattr(config, "workerinput"):
        asked = ", ".join(clause for _, clause in ours)
        raise pytest.UsageError(
            f"gallocheck: {setting.subject} offers nothing that {asked} are about (it declares {setting.declares}):"
            " choose other clauses with -m or -k, or another --gallocheck-subject."
        )
    for item, clause in ours:
        entry = setting.expects(clause)
        if not setting.applies(clause):
            why = f"{setting.subject} does not offer what {clause} is about: it declares {setting.declares}"
            item.add_marker(pytest.mark.skip(reason=why))
        elif entry:
            why = f"{entry.reason} ({entry.where})"
            item.add_marker(pytest.mark.xfail(reason=why, raises=Broken, strict=False))


def pytest_report_header(config: pytest.Config) -> list[str] | None:
    if SETTING not in config.stash:
        return None
    s = config.stash[SETTING]
    return [f"gallocheck: {s.subject}: {s.described}", f"declares: {s.declares}",
            f"seed: {s.seed}, time: {s.seconds:g} s"]  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Before the first test, which takes the time of all: how long nothing will be seen."""
    config = session.config
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if (
        SETTING in config.stash
        and reporter
        and not hasattr(config, "workerinput")
        and not config.option.collectonly
    ):
        reporter.write_line(f"gallocheck: {hunt_ahead(config.stash[SETTING], workers_asked(config))}")


def workers_asked(config: pytest.Config) -> int:
    """How many workers of pytest-xdist the command line asks for; 1 without it."""
    asked = getattr(config.option, "numprocesses", None)
    return max(1, asked) if isinstance(asked, int) else 1


def hunt_ahead(setting: Setting, workers: int) -> str:
    """'seed 7: canaries, then one hunt of 60 s for all tests; the first test takes that long, ...'."""
    each = f" ({setting.seconds / workers:g} s in each of {workers} workers)" if workers > 1 else ""
    most = f", at most {setting.traces} traces" if setting.traces else ""
    return (
        f"seed {setting.seed}: first the canaries (some seconds), then one hunt of {setting.seconds:g} s{each}{most},"
        " for all tests together; the first test takes that long, the others read from it"
    )


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if SETTING not in config.stash:
        return
    from ..fuzz.subjects import how_to_report
    from ..report.record import RecordError
    from .github import errors
    from .record import write_record
    from .shares import read_all

    setting = config.stash[SETTING]
    done = read_all(Path(setting.folder))
    if done.traces:
        try:
            write_record(setting, done)
            source = Path(setting.source) if setting.source else None
            page = f"as a page: {how_to_report(Path(setting.out), setting.named, source)}"
        except RecordError as error:
            page = str(error)
        terminalreporter.write_line(
            f"gallocheck: {done.operations} operations in {done.traces} traces, seed {setting.seed}; {page}"
        )
    if os.environ.get("GITHUB_ACTIONS"):
        for line in errors(failures(terminalreporter)):
            terminalreporter.write_line(line)


def failures(terminalreporter: Any) -> Iterator[pytest.TestReport]:
    """The reports of the suite's tests that are red."""
    for sort in ("error", "failed"):
        for report in terminalreporter.stats.get(sort, []):
            if f"{MODULE}::" in report.nodeid:
                yield report


def pytest_unconfigure(config: pytest.Config) -> None:
    if SETTING in config.stash and not hasattr(config, "workerinput"):
        shutil.rmtree(config.stash[SETTING].folder, ignore_errors=True)
