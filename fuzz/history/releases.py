"""Subjects of public releases, as they are or with a fault mended."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ...native import trees
from ...native.tree_files import Progress, Tree, cache_dir, staging
from ..judge import Judge
from .blame import Blame
from .catalogue import Catalogue, CatalogueError, Fault, Mend


def library(releases: Catalogue, name: str, say: Progress, mends: Sequence[Mend] = ()) -> Path:
    """Fetches and builds a release. Raises TreeError, CatalogueError."""
    tree = trees.release(releases.release(name), say)
    return trees.build(tree, "plain", say, instead=_mended(tree, name, mends))


def _mended(tree: Tree, name: str, mends: Sequence[Mend]) -> dict[str, Path]:
    """The sources that the mends change, by name: changed copies in the cache."""
    texts: dict[str, str] = {}
    for mend in mends:
        text = texts.get(mend.file) or (tree.root / "src" / mend.file).read_text()
        texts[mend.file], n = re.subn(mend.find, mend.put, text)
        if not n:
            raise CatalogueError(f"A mend of {mend.file} matches nothing in {name}: {mend.find!r}.")
    return {file: _kept(file, text) for file, text in texts.items()}


def _kept(file: str, text: str) -> Path:
    home = cache_dir() / "mended" / hashlib.sha256(text.encode()).hexdigest()[:32]
    if not (home / file).is_file():
        with staging(home.parent) as folder:
            (folder / file).write_text(text)
            home.mkdir(exist_ok=True)
            os.replace(folder / file, home / file)
    return home / file


@contextmanager
def judges(releases: Catalogue, fault: Fault, say: Progress) -> Iterator[Blame]:
    """What it takes to tell this fault from others: all subjects that are compared, open."""
    with ExitStack() as stack:

        def of(name: str, mends: Sequence[Mend] = ()) -> Judge:
            return stack.enter_context(Judge(str(library(releases, name, say, mends))))

        mine, others = fault.mends, releases.beside(fault)
        yield Blame(
            of(fault.bad),
            of(fault.good),
            frozenset(fault.clauses),
            alone=of(fault.bad, mine) if mine else None,
            others=of(fault.bad, others) if others else None,
            every=of(fault.bad, [*others, *mine]) if mine and others else None,
        )
