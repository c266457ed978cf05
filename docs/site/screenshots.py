"""The README's pictures, docs/pictures/: a report with a finding, and a clause's page of the built site.

`make screenshots`; Chromium is needed (apt-get install chromium), and the site that `make docs` has made.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
CLAUSE = ROOT / "build" / "docs" / "html" / "clauses" / "R6.html"
MOST = 150_000  #: bytes of a picture
#: opens the first finding and goes to it
OPEN = """() => {
  const finding = document.querySelector("details.finding");
  finding.open = true;
  window.scrollTo(0, finding.getBoundingClientRect().top - 4);
}"""
MAIN = "from gallocheck.cli.main import run; run()"
#: a planted defect that is found at once: outputs are freed like any other tensor
CHECK = ["check", "P", "G", "--defect", "11", "--time", "12s", "--seed", "1"]


def gallocheck(folder: Path, *args: str, codes: tuple[int, ...]) -> None:
    done = subprocess.run([sys.executable, "-c", MAIN, *args], cwd=folder, capture_output=True, text=True)
    if done.returncode not in codes:
        raise SystemExit(
            f"gallocheck {' '.join(args)} ended with {done.returncode}: {done.stdout}{done.stderr}"
        )


def report(folder: Path) -> Path:
    """A check that finds a planted defect, as a page."""
    gallocheck(folder, *CHECK, codes=(1,))
    gallocheck(folder, "report", "findings", codes=(0,))
    return folder / "findings" / "report.html"


def picture(browser: Any, page: Path, name: str, width: int, height: int, script: str = "0") -> None:
    """What is to be seen of the page after the script, with few colours, so that the file is small."""
    tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
    tab.goto(page.as_uri())
    tab.evaluate(script)
    tab.wait_for_timeout(300)
    image = Image.open(io.BytesIO(tab.screenshot())).convert("RGB").quantize(96, dither=Image.Dither.NONE)
    PICTURES.mkdir(exist_ok=True)
    file = PICTURES / f"{name}.png"
    image.save(file, optimize=True)
    print(f"{file.relative_to(ROOT)}: {width} x {height}, {file.stat().st_size} bytes")
    if file.stat().st_size > MOST:
        raise SystemExit(f"{file} is larger than {MOST} bytes: take a smaller part of the page.")


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("Chromium is not installed: apt-get install chromium, then run this again.")
    if not CLAUSE.is_file():
        raise SystemExit("The site is not built: run make docs, then this again.")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # root has none
        browser = playwright.chromium.launch(executable_path=chromium, args=[*sandbox, "--disable-gpu"])
        picture(browser, report(Path(folder)), "report", 1000, 920, OPEN)
        picture(browser, CLAUSE, "clause", 1100, 1150)
        browser.close()


if __name__ == "__main__":
    main()
