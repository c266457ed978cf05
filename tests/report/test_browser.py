"""The page as people see it, in headless Chromium: desktop, phone, dark, print, keyboard, no network, no script."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .samples import SHOWN

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install playwright"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("Chromium is not installed: apt-get install chromium", allow_module_level=True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # root has none
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=[*sandbox, "--disable-gpu"])
        yield chromium
        chromium.close()


class Tab:
    """The page in a window of its own; `said`: all that it wrote to the console, `asked`: all that it loaded."""

    def __init__(self, browser: Any, file: Path, **how: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **how})
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri())

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def count(self, selector: str) -> int:
        return self.page.locator(selector).count()

    def width(self) -> int:
        """Of all that the page would scroll over, beyond what is seen; pixels."""
        return int(
            self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        )

    def open_all(self) -> None:
        self.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")


@pytest.fixture()
def tab(browser: Any, page_file: Path) -> Iterator[Tab]:
    with Tab(browser, page_file) as opened:
        yield opened
        assert opened.said == [], "nothing is written to the console"
        assert opened.asked == [page_file.as_uri()], "nothing else is loaded"


def test_every_finding_opens_and_shows_its_picture(tab: Tab) -> None:
    assert tab.count("details.finding") == len(SHOWN) + 1
    for n in range(1, len(SHOWN) + 1):
        finding = tab.page.locator(f"#finding-{n}")
        assert not finding.locator("svg").first.is_visible()
        finding.locator("> summary").click()
        drawn = finding.locator(".scroll svg")
        assert drawn.count() >= 2, "both sides"
        for k in range(drawn.count()):
            box = drawn.nth(k).bounding_box()
            assert box is not None and box["width"] > 100 and box["height"] > 60
        shapes = finding.locator("figure svg >> nth=0").locator("rect, line")
        assert shapes.count() > 3
        assert finding.locator("tr.here").count() == 1


def test_pictures_have_colours_and_hatches(tab: Tab) -> None:
    tab.open_all()
    fill = tab.page.locator("#finding-1 rect.live").first.evaluate("e => getComputedStyle(e).fill")
    assert fill == "rgb(0, 114, 178)"
    wrong = tab.page.locator("#finding-1 rect.wrong").first.evaluate("e => getComputedStyle(e).fill")
    assert "url(" in wrong and "wrong" in wrong


def test_the_keyboard(tab: Tab) -> None:
    """j and k go from finding to finding, Enter opens and closes, / filters, Escape leaves the filter."""
    at = "document.activeElement.parentElement.id"
    keys = tab.page.keyboard
    for key, where in (("j", 1), ("j", 2), ("j", 3), ("k", 2), ("k", 1), ("k", 1)):
        keys.press(key)
        assert tab.page.evaluate(at) == f"finding-{where}"
    keys.press("Enter")
    assert tab.page.locator("#finding-1").evaluate("d => d.open")
    assert tab.page.locator("#finding-1 svg").first.is_visible()
    keys.press("Enter")
    assert not tab.page.locator("#finding-1").evaluate("d => d.open")
    keys.press("/")
    keys.type("r")
    shown = tab.page.locator("details.finding:visible .id")
    assert set(shown.all_inner_texts()) == {"R3", "R12"}
    keys.type("3")
    assert shown.all_inner_texts() == ["R3"]
    keys.press("Escape")
    keys.press("j")
    assert tab.page.evaluate(at) == "finding-2", "what is hidden is passed over"
    tab.page.locator("#filter").fill("no such words")
    assert shown.count() == 0 and tab.page.locator("#none").is_visible()
    tab.page.locator("#filter").fill("generation")
    tab.page.locator("#filter").fill("")
    assert shown.count() == len(SHOWN) + 1


def test_a_link_opens_its_finding(browser: Any, page_file: Path) -> None:
    with Tab(browser, page_file) as tab:
        tab.page.goto(f"{page_file.as_uri()}#finding-4")
        assert tab.page.locator("#finding-4 svg").first.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1200])
def test_nothing_scrolls_sideways(browser: Any, page_file: Path, width: int, scheme: str) -> None:
    with Tab(browser, page_file, viewport={"width": width, "height": 740}, color_scheme=scheme) as tab:
        assert tab.width() == 0
        tab.open_all()
        assert tab.width() == 0, "wide pictures scroll inside"
        inner = tab.page.locator(f"#finding-{len(SHOWN)} .scroll").first
        assert inner.evaluate("e => e.scrollWidth > e.clientWidth"), (
            "173 operations are wider than any screen"
        )
        body = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
        paper = tab.page.locator("svg.gcpic").first.evaluate("e => getComputedStyle(e).backgroundColor")
        assert body == paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(13, 17, 23)")
        assert tab.said == []


def test_on_a_phone(browser: Any, page_file: Path) -> None:
    """The legend does not scroll away; a picture whose failure is seen starts at its axis, another at the failure."""
    with Tab(browser, page_file, viewport={"width": 360, "height": 740}) as tab:
        tab.open_all()
        tab.page.wait_for_function(f"document.querySelector('#finding-{len(SHOWN)} .scroll').scrollLeft > 0")
        first = "e => { const s = e.getBoundingClientRect(); return [...e.querySelectorAll('rect.bad, rect.wrong')]"
        first += ".map(r => r.getBoundingClientRect()).some(r => r.left >= s.left && r.left < s.right); }"
        for n in range(1, len(SHOWN) + 1):
            wide = tab.page.locator(f"#finding-{n} .scroll")
            for k in range(wide.count()):
                marked = wide.nth(k).locator("rect.bad, rect.wrong").count()
                assert wide.nth(k).evaluate(first if marked else "e => e.scrollLeft === 0"), (n, k)
            keys = tab.page.locator(f"#finding-{n} .key svg")
            assert n == len(SHOWN) or keys.count(), "of the last there are buffers alone"
            assert all(x["width"] < 330 for x in (k.bounding_box() for k in keys.all()) if x)
        assert tab.count(".scroll g.legend") == 0 and tab.width() == 0


def test_on_paper(browser: Any, short_page: Path) -> None:
    """Printed it is light, and every finding is open, whatever the screen is."""
    with Tab(browser, short_page, color_scheme="dark") as tab:
        closed = tab.page.pdf()
        assert closed.startswith(b"%PDF") and len(closed) > 50_000
        tab.page.emulate_media(media="print", color_scheme="dark")
        assert (
            tab.page.locator("#finding-2 svg").first.evaluate("e => getComputedStyle(e).backgroundColor")
            == "rgb(255, 255, 255)"
        )
        tab.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert tab.page.locator("#finding-2 svg").first.is_visible()
        tab.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        assert not tab.page.locator("#finding-2").evaluate("d => d.open")


def test_without_javascript_and_without_a_network(browser: Any, page_file: Path) -> None:
    """All is there to read, and findings open, for details need no script."""
    with Tab(browser, page_file, java_script_enabled=False, offline=True) as tab:
        assert not tab.page.locator("#filter").is_visible()
        tab.page.locator("#finding-1 > summary").click()
        assert tab.page.locator("#finding-1 svg").first.is_visible()
        assert tab.page.locator("#clauses table").first.is_visible()


def test_what_can_be_reached_has_a_name(tab: Tab) -> None:
    """Pictures, scrolled regions and the filter say what they are to who cannot see them."""
    unnamed = tab.page.evaluate(
        "[...document.querySelectorAll('svg, [role=region], input')].filter(e => !(e.getAttribute('aria-label')"
        " || e.closest('label'))).length"
    )
    assert unnamed == 0
    assert tab.page.evaluate("document.documentElement.lang") == "en"
    ids = tab.page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids)), "no id is there twice"
