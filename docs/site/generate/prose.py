"""Pages that people write: those of this site, and the project's docs/*.md, which are taken as they stand."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from .where import ROOT

PAGES = ROOT / "docs" / "site" / "pages"
DOCS = ROOT / "docs"
_LINK = re.compile(r"(?<!!)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


class BadLink(Exception):
    """A page names a file that is not there. One sentence."""


def write(out: Path) -> None:
    """All of them below `out`. Raises BadLink."""
    for page in sorted(PAGES.rglob("*.md")):
        target = out / page.relative_to(PAGES)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page.read_text())
    (out / "more").mkdir(parents=True, exist_ok=True)
    for doc in sorted(DOCS.glob("*.md")):
        (out / "more" / doc.name).write_text(linked(doc, out))


def linked(doc: Path, out: Path) -> str:
    """The page with its links as they are on the site: other docs beside it, files beside those."""

    def change(match: re.Match[str]) -> str:
        target = (doc.parent / match[1]).resolve()
        if not target.is_file():
            raise BadLink(f"{doc.relative_to(ROOT)} links to {match[1]}, which is not there.")
        if target.parent == DOCS and target.suffix == ".md":
            return f"]({target.name}{match[2] or ''})"
        if target == ROOT / "README.md":
            return "](../index.md)"
        name = target.relative_to(ROOT)
        copy = out / "more" / "files" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(target, copy)
        return f"](files/{name.as_posix()})"

    return _LINK.sub(change, doc.read_text())
