"""What every process of a session must know: the subject, the seed, how long, where findings go."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..fuzz.applies import NotApplicable, applies, declared
from ..fuzz.baseline import base_of
from ..fuzz.duration import seconds
from ..fuzz.judge import Judge
from ..fuzz.replay import check_writable
from ..fuzz.subjects import VARIANT, Subject, find, how_to_name
from ..model.records import Cap
from ..report.course import now
from . import expected


@dataclass(frozen=True)
class Setting:
    """Plain values only: pytest-xdist carries it to its workers.

    `named`: the subject as the command line names it; `subject`, `library`: its name and library; `described`: how
    it describes itself;
    `caps`: of Cap. `source`, `baseline`: paths of trees, '' where there is none. `options`: how the subject is
    named to `gallocheck replay`. `seconds`, `traces` (0: no limit): of the whole hunt. `out`: where replay files
    go; `folder`: where the workers meet. `entries`: of expected.Entry.
    """

    began: str
    named: str
    subject: str
    library: str
    described: str
    caps: int
    source: str
    baseline: str
    defect: int
    options: str
    seed: int
    seconds: float
    traces: int
    out: str
    folder: str
    entries: tuple[tuple[str, str, bool, str], ...]

    def applies(self, clause: str) -> bool:
        """Whether the subject is held to the clause; every subject is to `silent`."""
        return clause == expected.SILENT or applies(clause, Cap(self.caps))

    def expects(self, clause: str) -> expected.Entry | None:
        return next((expected.Entry(*e) for e in self.entries if e[0] == clause), None)

    def target(self) -> Subject:
        return Subject(self.subject, self.library, self.source)

    @property
    def declares(self) -> str:
        return declared(Cap(self.caps))

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Setting:
        """Back from what `plain` gave, however it travelled."""
        return cls(**{**values, "entries": tuple(tuple(e) for e in values["entries"])})


def open_setting(option: Any, say: Callable[[str], None]) -> Setting:
    """Finds or builds everything that the options name. `say` is told what takes time.

    Raises the errors of the command line, each one sentence: UnknownSubject, TreeError, SubjectError,
    ExpectedError, NotApplicable, BadDuration, ReplayError.
    """
    source = Path(option.gallocheck_source) if option.gallocheck_source else None
    baseline = Path(option.gallocheck_baseline) if option.gallocheck_baseline else None
    name = option.gallocheck_subject or ("ggml" if source else "bundled")
    entries = expected.read(Path(option.gallocheck_expected)) if option.gallocheck_expected else []
    out, limit = Path(option.gallocheck_out), seconds(option.gallocheck_time)
    if option.gallocheck_traces is not None and option.gallocheck_traces < 1:
        raise NotApplicable(
            f"--gallocheck-traces {option.gallocheck_traces} is no number of traces: give 1 or more."
        )
    if baseline and name not in VARIANT:
        raise NotApplicable(
            f"--gallocheck-baseline goes with the subjects {', '.join(list(VARIANT)[:-1])} and {list(VARIANT)[-1]};"
            " name one with --gallocheck-subject, or a tree with --gallocheck-source."
        )
    check_writable(out, option="--gallocheck-out")
    defect = option.gallocheck_defect
    target = find(name, source, defect, say)
    with Judge(target.library, defect) as judge, base_of(target, source, None, baseline, say):
        described, caps = judge.describe, int(judge.caps)
    return Setting(
        began=now(),
        named=name,
        subject=target.name,
        library=target.library,
        described=described,
        caps=caps,
        source=str(source or ""),
        baseline=str(baseline or ""),
        defect=defect,
        options=how_to_name(name, source, defect),
        seed=random.SystemRandom().randrange(2**32)
        if option.gallocheck_seed is None
        else option.gallocheck_seed,
        seconds=limit,
        traces=option.gallocheck_traces or 0,
        out=str(out),
        folder=tempfile.mkdtemp(prefix="gallocheck-suite-"),
        entries=tuple(tuple(e) for e in entries),  # type: ignore[misc]
    )
