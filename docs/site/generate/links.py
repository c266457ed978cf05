"""Checks every link between the pages of the built site: python -m generate.links HTML. Exit 1: some are broken."""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.ids.add(value or "")
            elif name in ("href", "src") and tag in ("a", "link", "img", "script"):
                self.links.append(value or "")


@cache
def read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text())
    return page


def broken(site: Path) -> list[str]:
    """A sentence for each link that leads nowhere. Links to other sites are not followed."""
    found = []
    for path in sorted(site.rglob("*.html")):
        for link in dict.fromkeys(read(path).links):
            where = urlsplit(link)
            if where.scheme or where.netloc or link.startswith("data:"):
                continue
            name = path.relative_to(site)
            target = (path.parent / unquote(where.path)).resolve() if where.path else path
            if not target.is_file():
                found.append(f"{name} links to {link}: there is no such file")
            elif (
                where.fragment
                and target.suffix == ".html"
                and unquote(where.fragment) not in read(target).ids
            ):
                found.append(f"{name} links to {link}: there is no such place in that page")
    return found


def main() -> None:
    site = Path(sys.argv[1])
    wrong, pages = broken(site), len(list(site.rglob("*.html")))
    if not pages:
        raise SystemExit(f"{site} has no pages: build them with make docs.")
    print("\n".join([*wrong, f"{pages} pages, {len(wrong)} broken links"]))
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
