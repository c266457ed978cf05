"""The tree that runs beside a subject, so that what fails there too is not called new."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from ..native.trees import TreeError
from .applies import NotApplicable
from .expected import PINNED
from .judge import Judge
from .subjects import VARIANT, Subject, find


def base_of(
    target: Subject,
    source: Path | None,
    expected: Path | None,
    baseline: Path | None,
    say: Callable[[str], None],
) -> AbstractContextManager[Judge | None]:
    """The baseline, or the pinned release beside a tree (`source`) that is expected to fail as it does;
    else nothing. `say` is told what takes time.

    Raises NotApplicable without it: its failures would hide new ones.
    """
    if source is not None or baseline is not None:
        told, say = say, lambda text: told(f"baseline: {text}")
    if baseline is not None:
        if expected is not None or target.name not in VARIANT:
            raise NotApplicable(
                "--baseline goes with --subject ggml (or ggml-resizable, ggml-group) and without --expected:"
                " what fails in the baseline too is expected."
            )
        return Judge(find(target.name, None if baseline == PINNED else baseline, 0, say).library)
    if source is None or expected != PINNED:
        return nullcontext()
    try:
        return Judge(find(target.name, None, 0, say).library)
    except TreeError:
        raise NotApplicable(
            "--expected pinned runs the pinned release beside the tree, and it could not be fetched or built;"
            " leave --expected out, or name the file of a list."
        ) from None
