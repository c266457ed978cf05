"""The seeds' figures on simulated devices: what is met, what is not, and that nothing is invented."""

from __future__ import annotations

from pathlib import Path

import pytest
from gallocheck.model.records import Cap, Op, Strategy
from gallocheck.native.header import SubjectError
from gallocheck.native.library import library_path
from gallocheck.scenario import device, one_card, picture, reallocations, seeds, two_cards
from gallocheck.scenario.catalogue import SCENARIOS, run_one
from gallocheck.scenario.report import Curve, Figure, Report


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    return {name: run_one(name) for name in SCENARIOS}


def test_every_row_of_the_contract_s_table_is_there() -> None:
    assert list(SCENARIOS) == [
        "peak", "pressure", "after-load", "prompt-1k", "prompt-10k", "prompt-95k", "reallocations",
    ]  # fmt: skip


def test_all_together_take_less_than_half_a_minute(reports: dict[str, Report]) -> None:
    assert sum(r.seconds for r in reports.values()) < 30


def test_what_sharing_saves_on_one_card(reports: dict[str, Report]) -> None:
    found = {f.what: (f.stated, f.measured) for f in reports["peak"].figures}
    assert found == {
        "independent": (22723, 22723),
        "by reference count": (21681, 21681),
        "owner and borrower": (None, 21681),
        "saved by sharing": (1042, 1042),
    }


def test_the_start_under_pressure(reports: dict[str, Report]) -> None:
    figures = reports["pressure"].figures
    assert [(f.stated, f.measured) for f in figures] == [
        ("out of memory", "out of memory"), ("starts", "starts"), (None, "starts"), (None, "starts"),
        (None, "starts"),
    ]  # fmt: skip
    assert reports["pressure"].curves[0].refused and not reports["pressure"].curves[1].refused


@pytest.mark.parametrize(
    ("strategy", "lost", "status"),
    [
        (Strategy.APART, seeds.LEAST_LOST - 1, "DONE"),
        (Strategy.APART, seeds.LEAST_LOST, "REFUSED"),
        (Strategy.COUNTED, seeds.MOST_LOST, "DONE"),
        (Strategy.COUNTED, seeds.MOST_LOST + 1, "REFUSED"),
    ],
)
def test_the_bounds_of_what_may_be_lost_are_sharp(strategy: Strategy, lost: int, status: str) -> None:
    """But for the page that a device gives at least."""
    page = device.PAGE // device.MIB
    lost += {"DONE": -page, "REFUSED": page}[status]
    run, last = one_card.start(one_card.subject(Cap.COUNTED), strategy, seeds.PRESSURE + lost)
    run.close()
    assert last.status.name == status


def test_after_load_and_at_10k_and_95k_the_two_cards_have_what_is_stated(reports: dict[str, Report]) -> None:
    """2 MiB on the second card at 10k are in the document's own figures; 24 and 50 are the driver's, by itself."""
    off = {
        name: {f.what: f.difference for f in reports[name].figures if f.difference}
        for name in ("after-load", "prompt-10k", "prompt-95k")
    }
    assert off == {
        "after-load": {},
        "prompt-10k": {"RTX 3060, phase-aware": 2, "RTX 3060, both options": 2},
        "prompt-95k": {"RTX 4070, both options": -24, "RTX 3060, both options": -50},
    }
    assert tuple(-d for d in off["prompt-95k"].values()) == seeds.KEPT


def test_at_1k_the_document_is_6_mib_from_what_it_says_itself(reports: dict[str, Report]) -> None:
    found = {f.what: f.difference for f in reports["prompt-1k"].figures}
    assert {d for name, d in found.items() if seeds.OFF in name} == {0}
    assert {d for name, d in found.items() if seeds.OFF not in name} == {-6}


def test_reallocations(reports: dict[str, Report]) -> None:
    found = [(f.stated, f.measured) for f in reports["reallocations"].figures]
    assert found == [(4, 4), (8, 6.2), (2, 2), (0, 0), (0, 0), (None, 2)]


@pytest.mark.parametrize(("tokens", "times"), [(90.1, 4), (90.9, 4), (91.7, 4), (91.9, 3)])
def test_four_is_no_accident_of_one_size(tokens: float, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Token parts from 90 to 92 MiB agree with the stated figures, in pages of 2 MiB; the last quarter gives three."""
    monkeypatch.setattr(seeds, "TOKEN_BYTES", round(tokens * 2**20 / seeds.MICRO_BATCH))
    first = reallocations.First()
    with first.run:
        assert first.prompt(10_000) == times


def test_what_is_derived() -> None:
    assert (seeds.SAVED, seeds.LEAST_LOST, seeds.MOST_LOST) == (1042, 818, 1859)
    assert (seeds.ATTENTION, seeds.ATTENTION_BYTES, seeds.LESS_TOKENS) == (128, 4, 218)
    assert (
        two_cards.pages(seeds.TARGET) - two_cards.pages(seeds.TARGET / seeds.MICRO_BATCH) == seeds.LESS_TOKENS
    )
    for length in seeds.TOKENS:  # sharing saves what is stated, but for the figures that the tests above name
        apart, shared = (seeds.STATED[length][s] for s in (seeds.OFF, seeds.PHASE))
        assert all(abs(a - b - seeds.DRAFT) <= 6 for a, b in zip(apart, shared, strict=True))


def test_every_figure_says_why_and_every_scenario_what_it_assumes(reports: dict[str, Report]) -> None:
    for report in reports.values():
        assert report.derived and report.assumed and all(f.why for f in report.figures)


def test_the_batches_of_a_prompt() -> None:
    assert list(two_cards.batches(10, cells=64)) == [(10, 10)]
    assert list(two_cards.batches(1000, cells=2048)) == [(256, 256), (256, 512), (256, 768), (232, 1000)]
    assert [used for _, used in two_cards.batches(1000, cells=8192)] == [256, 1000]
    assert list(two_cards.batches(95_000))[-1] == (24, 95_000)


def test_pictures_show_every_curve(reports: dict[str, Report], tmp_path: Path) -> None:
    assert all(c.mib and c.panel for r in reports.values() for c in r.curves)
    for report in (reports[name] for name in ("pressure", "prompt-1k", "reallocations")):
        path = tmp_path / f"{report.name}.png"
        picture.draw(report, path)
        assert path.read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(OSError):
        picture.draw(report, tmp_path / "no" / "such.png")


def test_what_a_picture_leaves_out_is_below_what_matters() -> None:
    low, high = picture.bounds([Curve("a", "p", [0, 0, 900, 1000, 1000, 960])], {"card": 1200})
    assert 850 < low < 960 and high > 1200


def test_a_subject_that_cannot_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    library = library_path("bundled")
    with pytest.raises(SubjectError, match="does not declare canary"):
        device.subject(Cap.CANARY, library)
    with (
        two_cards.load(device.subject(two_cards.NEEDS), seeds.OFF) as run,
        pytest.raises(SubjectError, match="MISUSE"),
    ):
        run.must("open the target", Op(two_cards.Kind.CTX_OPEN, 0))


def test_a_figure_of_words_has_no_difference() -> None:
    assert Figure("x", "starts", "starts").difference is None and Figure("x", None, 3).difference is None
    assert Figure("x", 3, 5).difference == 2
