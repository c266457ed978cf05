"""One test an invariant, named by clause id and title. All read the verdict of one hunt."""

from __future__ import annotations

from typing import NoReturn

import pytest

from ..spec.clauses import CLAUSES, Clause
from . import plugin
from .expected import SILENT
from .setting import Setting
from .shares import Share, hunt_all

TESTS = [
    pytest.param(c, id=f"{c.id}-{c.title}", marks=getattr(pytest.mark, c.letter))
    for c in CLAUSES
]  # fmt: skip


@pytest.fixture(scope="session")
def setting(pytestconfig: pytest.Config) -> Setting:
    return plugin.setting_of(pytestconfig)


@pytest.fixture(scope="session")
def found(setting: Setting, request: pytest.FixtureRequest) -> Share:
    """What the hunt for the clauses of this session has found."""
    clauses = [
        name for item in request.session.items if (name := plugin.clause_of(item)) and setting.applies(name)
    ]
    worker, workers = plugin.worker_of(request.config)
    try:
        return hunt_all(setting, clauses, worker, workers)
    except plugin.sentences() as error:
        fail(str(error))


@pytest.mark.parametrize("clause", TESTS)
def test_clause(clause: Clause, setting: Setting, found: Share, request: pytest.FixtureRequest) -> None:
    decide(clause.id, f"{clause.id} ({clause.title})", setting, found, request.node)


def test_every_difference_is_decided_by_a_clause(
    setting: Setting, found: Share, request: pytest.FixtureRequest
) -> None:
    decide(SILENT, "A difference that no clause decides", setting, found, request.node)


def decide(name: str, title: str, setting: Setting, found: Share, test: pytest.Item) -> None:
    """Passes where the clause was exercised and holds."""
    mine = [f for f in found.findings if f.clause == name]
    new = [f for f in mine if not f.known]
    exercised = found.operations if name == SILENT else found.tally.get(name, 0)
    test.user_properties += [("clause", name), ("seed", setting.seed), ("exercised", exercised)]
    test.user_properties += [("replay", finding.path) for finding in new]
    if name in found.mute:
        fail(
            f"The canary of {name} was not found: the check itself is broken, its result would mean nothing."
        )
    if found.mute:
        fail(f"Nothing was checked: the canary of {', '.join(found.mute)} was not found.")
    if new:
        raise plugin.Broken("\n\n".join(f.text for f in new), pytrace=False)
    if mine:
        pytest.xfail("; ".join(sorted({f.known for f in mine})))
    entry = setting.expects(name)
    if not exercised:
        why = f"{title} was not exercised in {found.operations} operations (seed {setting.seed})"
        if entry and not entry.always:
            pytest.xfail(f"{why}; {entry.where}: {entry.reason}")
        fail(  # whatever is expected: a check that did not look says nothing
            f"{why}: give it more time with --gallocheck-time, or list it as `{name} sometimes` with --gallocheck-expected."
        )
    if entry and entry.always:
        fail(f"{title} holds, but {entry.where} expects it to fail ({entry.reason}): take the line out.")


def fail(text: str) -> NoReturn:
    pytest.fail(text, pytrace=False)
