"""What keeps mutants from being made or checked."""

from __future__ import annotations


class MutantsError(Exception):
    """One sentence for people; exit code 2."""

    exit_code = 2
