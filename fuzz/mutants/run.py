"""All mutants, one after the other or side by side; what came of each is kept at once."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..hands import Hands
from .catalogue import Mutant
from .sources import original
from .store import Row, Store
from .trial import KILLED, SURVIVED, Outcome, Trial

LISTED_S = 10.0


@dataclass
class State:
    """How far it is. `done` of `all`, `now` of them in this run."""

    all: int
    done: int = 0
    now: int = 0
    killed: int = 0
    survived: int = 0
    ran_s: float = 0.0

    @property
    def left_s(self) -> float:
        """Seconds, as far as can be said now; endless before the first is done."""
        return (self.all - self.done) * self.ran_s / self.now if self.now else float("inf")


@dataclass
class Work:
    """Checks `mutants` for `seconds` each, with processes `hands`, and keeps what comes of them in `store`.

    `listed`: keys of those that are known to make no difference, which get no more than LISTED_S.
    `troubles`: by mutant, why nothing came of it.
    """

    store: Store
    mutants: list[Mutant]
    seed: int
    seconds: float
    listed: frozenset[str] = frozenset()
    troubles: dict[str, str] = field(default_factory=dict)

    def run(
        self,
        hands: Hands[Trial, Outcome],
        show: Callable[[State], None],
        stop: Callable[[], bool] = lambda: False,
    ) -> State:
        """Does what is not done yet; a stop leaves the rest for another time."""
        with tempfile.TemporaryDirectory(prefix="build-", dir=self.store.folder) as made:
            return self._run(Path(made), hands, show, stop)

    def _run(
        self,
        folder: Path,
        hands: Hands[Trial, Outcome],
        show: Callable[[State], None],
        stop: Callable[[], bool],
    ) -> State:
        rows = self.store.rows()
        todo = [m for m in self.mutants if not self._done(m, rows.get(m.key))]
        todo.sort(key=lambda m: m.source.name)  # what the original passes is drawn once for each file
        state = State(len(self.mutants), len(self.mutants) - len(todo))
        mine = [rows[m.key] for m in self.mutants if m.key in rows and m not in todo]
        state.killed = sum(r.state == KILLED for r in mine)
        state.survived = sum(r.state == SURVIVED for r in mine)
        known = {r.digest: r.key for r in rows.values() if r.state in (KILLED, SURVIVED)}
        originals: dict[str, _Original] = {}
        begin, todo = time.monotonic(), todo[::-1]
        while (todo or hands.busy) and not stop():
            while todo and len(hands.busy) < hands.size and not stop():
                mutant = todo.pop()
                hands.begin(self._trial(mutant, rows.get(mutant.key), folder, originals, known))
            for ended in hands.ended(0.25):
                state.done, state.now = state.done + 1, state.now + 1
                out = ended.done
                if out is None:
                    self.troubles[ended.job.key] = ended.why
                    continue
                self.store.put(out)
                if out.state in (KILLED, SURVIVED):
                    known[out.digest] = out.key
                    state.killed += out.state == KILLED
                    state.survived += out.state == SURVIVED
            state.ran_s = time.monotonic() - begin
            show(state)
        return state

    def _done(self, mutant: Mutant, row: Row | None) -> bool:
        """A survivor is checked on where there is more time now."""
        return row is not None and not (row.state == SURVIVED and row.checked_s < 0.9 * self._seconds(mutant))

    def _seconds(self, mutant: Mutant) -> float:
        return min(self.seconds, LISTED_S) if mutant.key in self.listed else self.seconds

    def _trial(
        self, m: Mutant, row: Row | None, folder: Path, originals: dict[str, _Original], known: dict[str, str]
    ) -> Trial:
        o = originals.get(m.source.name) or _build(m, folder, originals)
        before = (row.checked_s, row.traces) if row is not None and row.state == SURVIVED else (0.0, 0)
        known = {**known, o.digest: ""}
        return Trial(m.key, m.source, m.mutation, o.library, known, self.seed, self._seconds(m), str(folder), o.headers,
                     o.planted if m.source.detects(m.was) else "", *before)  # fmt: skip


class _Original(NamedTuple):
    """A source as it is: its library, the digest of what it compiles to, its headers; `planted`: its library
    with planted defects, '' where it needs none."""

    library: str
    digest: str
    headers: str
    planted: str


def _build(m: Mutant, folder: Path, originals: dict[str, _Original]) -> _Original:
    place = folder / f"original-{len(originals)}"
    place.mkdir()
    headers, library = m.source.headers(place), place / "original.so"
    digest, planted = original(m.source, place, library, headers), place / "planted.so"
    with_defects = str(planted) if m.source.planted(m.source.text, place, planted) else ""
    made = _Original(str(library), digest, headers, with_defects)
    originals[m.source.name] = made
    return made


def clean(folder: Path) -> None:
    """Removes what a run that was killed had left."""
    for left in folder.glob("build-*"):
        shutil.rmtree(left, ignore_errors=True)
