"""What ends a command with one sentence and an exit code, never a traceback."""

from __future__ import annotations

import os
import sys

from ..fuzz.applies import NotApplicable
from ..fuzz.campaign.errors import CampaignError
from ..fuzz.dump.lines import DumpError
from ..fuzz.duration import BadDuration
from ..fuzz.emit_checks import EmitError
from ..fuzz.expected import ExpectedError
from ..fuzz.history.catalogue import CatalogueError, UnknownFault
from ..fuzz.history.results import ResultsError
from ..fuzz.mutants.errors import MutantsError
from ..fuzz.replay import ReplayError
from ..fuzz.subjects import UnknownSubject
from ..native.trees import TreeError
from ..native.worker import SubjectError
from ..report.record import RecordError
from ..scenario.report import UnknownScenario
from ..spec.clauses import NotProved, UnknownClause

#: errors that are one sentence for the user, and their exit codes where they carry none
SENTENCES = (
    CampaignError,
    DumpError,
    EmitError,
    NotApplicable,
    ExpectedError,
    MutantsError,
    ReplayError,
    UnknownSubject,
    TreeError,
    SubjectError,
    UnknownClause,
    NotProved,
    BadDuration,
    UnknownScenario,
    UnknownFault,
    CatalogueError,
    ResultsError,
    RecordError,
)


def unwritten(error: OSError) -> int:
    """Says that the output cannot be written, where somebody still reads; the exit code.
    Raises the error again where it is about a file."""
    if error.filename is not None:
        raise error
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left of it goes nowhere
    if not isinstance(error, BrokenPipeError):
        print(f"gallocheck: the output cannot be written: {error.strerror}.", file=sys.stderr)
    return 3
