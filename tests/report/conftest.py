"""One page for all tests that look at one: a check that found a defect of most letters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from gallocheck.fuzz.judge import Judge
from gallocheck.report.page import page
from gallocheck.report.runs import Job
from gallocheck.report.story import Story

from . import samples


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    with samples.planted() as judge:
        yield judge


@pytest.fixture(scope="session")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return samples.job_of(tmp_path_factory.mktemp("job"))


@pytest.fixture(scope="session")
def stories(job: Job, judge: Judge) -> dict[int, Story]:
    return samples.told(job, judge)


@pytest.fixture(scope="session")
def page_file(job: Job, stories: dict[int, Story]) -> Path:
    file = job.folder / "report.html"
    file.write_text(page(job, stories, "gallocheck's own allocator"), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def short_page(tmp_path_factory: pytest.TempPathFactory, judge: Judge) -> Path:
    """A page of two findings."""
    job = samples.job_of(tmp_path_factory.mktemp("short"), samples.SHOWN[:2])
    file = job.folder / "report.html"
    file.write_text(page(job, samples.told(job, judge, samples.SHOWN[:2])), encoding="utf-8")
    return file
