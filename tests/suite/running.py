"""Runs the suite as a user does: pytest in a process of its own, in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree

#: where an older gallocheck is installed than the one that is tested
INSTALLED = any(e.name == "gallocheck" for e in entry_points(group="pytest11"))
PLUGIN = () if INSTALLED else ("-p", "gallocheck.suite.plugin")


@dataclass
class Ran:
    code: int
    text: str
    cases: dict[str, ElementTree.Element]  # by name, of the JUnit XML

    def outcome(self, name: str) -> str:
        """passed, failure, skipped (which an expected failure is too), error."""
        children = [child.tag for child in self.cases[name] if child.tag != "properties"]
        return children[0] if children else "passed"

    def properties(self, name: str) -> dict[str, str]:
        return {p.attrib["name"]: p.attrib["value"] for p in self.cases[name].iter("property")}


def suite(*args: object, at: Path, **env: str) -> Ran:
    """The suite with these options."""
    return own_tests("--pyargs", "gallocheck.suite", *args, at=at, **env)


def own_tests(*args: object, at: Path, report: str = "junit.xml", **env: str) -> Ran:
    """pytest in the folder `at`, ended within five minutes. `report`: the JUnit XML that it writes."""
    command = [sys.executable, "-m", "pytest", *PLUGIN, f"--junitxml={report}", *map(str, args)]
    done = subprocess.run(
        command, cwd=at, env=environment(**env), capture_output=True, text=True, timeout=300
    )
    written = at / report
    cases = ElementTree.parse(written).iter("testcase") if written.exists() else ()
    return Ran(done.returncode, done.stdout + done.stderr, {c.attrib["name"]: c for c in cases})


def environment(**more: str) -> dict[str, str]:
    """Ours, without what this run of pytest has put into it."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "GITHUB_"))}
    return {**ours, "COLUMNS": "250", **more}
