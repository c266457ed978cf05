"""Failures as GitHub shows them beside a pull request: one line each, of its workflow commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from ..spec.clauses import CLAUSES
from .expected import SILENT

TITLES = {c.id: f"{c.id} {c.title}" for c in CLAUSES} | {SILENT: "a difference that no clause decides"}
DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
PROPERTY = DATA | {":": "%3A", ",": "%2C"}


def errors(failures: Iterable[pytest.TestReport]) -> Iterator[str]:
    """`::error title=R6 shrink after both reserve::...`, the message whole."""
    for report in failures:
        clause = dict(report.user_properties).get("clause", "")
        title = TITLES.get(str(clause), report.nodeid.rpartition("::")[2])
        yield f"::error title={escaped(title, PROPERTY)}::{escaped(text_of(report), DATA)}"


def text_of(report: pytest.TestReport) -> str:
    """The failure's message, without the line in which pytest-xdist names the worker."""
    head, _, rest = report.longreprtext.partition("\n")
    return rest if head.startswith("[gw") else report.longreprtext


def escaped(text: str, table: dict[str, str]) -> str:
    return "".join(table.get(c, c) for c in text)
