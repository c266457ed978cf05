"""A finding told in plain text: the clause, what was expected and seen, the shrunk sequence, how to replay it."""

from __future__ import annotations

from collections.abc import Iterator

from ..spec.clauses import clause
from .expected import AS_BASELINE
from .hunt import Finding
from .words import describe_op, describe_trace


def headline(finding: Finding) -> tuple[str, str]:
    """(what is the matter, where and how): 'R6 is broken', 'at operation 6: ...'."""
    v = finding.verdict
    head = f"{v.clause} is broken" if v.sort == "broken" else "model and subject differ, no clause decides"
    return head, f"at operation {v.step}: {v.message}"


def story(finding: Finding, options: str) -> Iterator[str]:
    """All that comes after the headline, as texts of a line or more. `options` name the subject."""
    v = finding.verdict
    if v.sort == "broken":
        yield f"  {v.clause} {clause(v.clause).title}: {clause(v.clause).statement}"
    if v.expected or v.seen:
        yield f"  expected {v.expected}\n  seen     {v.seen}"
    yield describe_trace(finding.trace)
    if v.step < len(finding.trace.ops):
        yield f"  <- here: {describe_op(finding.trace.ops[v.step], finding.trace)}"
    if finding.like:
        beside = "the baseline" if finding.like == AS_BASELINE else "the pinned release"
        looks = "" if finding.like == AS_BASELINE else f"it looks like {finding.like.id}, but "
        yield f"  ({looks}{beside} does not fail here)"
    if not finding.confirmed:
        yield "  (it did not show again in a new process: the subject's behaviour depends on its past)"
    if finding.path:
        yield f"  replay: gallocheck replay {finding.path}{options}"
