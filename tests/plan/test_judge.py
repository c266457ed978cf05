"""A good dump holds; each way to break one is blamed on its clause, and on no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from gallocheck.fuzz.dump.found import Verdicts
from gallocheck.fuzz.dump.judge import CLAUSES, judge
from gallocheck.fuzz.dump.lines import read

from tests.plan.dumps import BEFORE, GRAPH, PLACES, Maker, changed, good, leaf, moved, tensor


def verdicts(maker: Maker, tmp_path: Path) -> Verdicts:
    return judge(read(maker.write(tmp_path / "dump.jsonl")))


def bound(places: list[list[int]], graph: list[dict] = GRAPH, size: int = 96, **how: object) -> Maker:
    return Maker(**how).graph(graph).buffer(size=size).reserve(sizes=(size,)).bind(places, sizes=(size,))  # type: ignore[arg-type]


def test_a_good_dump_holds(tmp_path: Path) -> None:
    found = verdicts(good(), tmp_path)
    assert not found.findings and not found.unclear
    exercised = {c for c in CLAUSES if found.exercised[c]}
    assert exercised >= {"P1", "P2", "P3", "P7", "P8", "P9", "P11", "P14", "G1", "G5", "R12"}
    assert [plan.peak for plan in found.plans] == [(96,)]


OTHER = [{**t, "at": t["at"] + 1} for t in changed("c", src=[1, 2])]  # another graph, in which a lives on
#: c does not read the input, but the end does
LATE = [{**t, "src": {"c": [1], "end": [5, 4, 0]}.get(t["name"], t["src"])} for t in GRAPH]
BROKEN: dict[str, tuple[str, Maker]] = {
    "c lies on b, which its view still shows": ("P7", bound(moved(c=[0, 32, 32]))),
    "c lies on the input, which end reads": ("P1", bound(moved(c=[0, 0, 32], end=[0, 64, 32]), LATE)),
    "end lies at 8": ("P2", bound(moved(end=[0, 8, 32]))),
    "c ends behind the buffer": ("P3", bound(moved(c=[0, 80, 32]))),
    "a chunk is larger than the largest buffer": ("P4", bound(PLACES, most=64)),
    "c lies on an output": (
        "P5", bound(moved(b=[0, 64, 32], v=[0, 80, 16], c=[0, 32, 32]), changed("a", output=True))),
    "two inputs share bytes": ("P6", Maker().graph(changed("w", input=True)).buffer().reserve().bind(
        moved(w=[0, 16, 64]), before=[])),
    "a view is not where its source is": ("P7", bound(moved(v=[0, 32, 16]))),
    "b may not be done in place": ("P8", bound(PLACES, changed("b", inplace=False))),
    "the layouts differ": ("P8", bound(PLACES, changed("b", layout="f16 16"))),
    "the same plan, another place": ("P9", bound(PLACES).reserve().bind(
        moved(a=[0, 64, 32], b=[0, 64, 32], v=[0, 80, 16], c=[0, 32, 32]))),
    "more is asked for than is used": ("P11", bound(PLACES, size=128)),
    "a measure replaces the buffer": ("P12", bound(PLACES).free().measure()),
    "a measure says less than a reservation takes": (
        "P12", Maker().graph(GRAPH).measure(sizes=(64,)).buffer().reserve().bind()),
    "a weight is moved": ("P14", bound(moved(w=[0, 64, 32], c=[0, 0, 32], end=[0, 64, 32]))),
    "a reservation that fits replaces the buffer": (
        "G1", bound(PLACES).free().buffer(1).reserve()),
    "memory that a failed reservation freed": (
        "G2", bound(PLACES).graph(OTHER, 1).free().buffer(1, 4096, ok=False).reserve(1, ok=False, sizes=(0,)).bind(
            [[-2, *spot[1:]] if spot[0] == 0 else spot for spot in PLACES], sizes=(0,))),
    "it ends in a bind after a failed reservation": (
        "G2", bound(PLACES).graph(OTHER, 1).reserve(1, ok=False).call("bind", 1)),
    "it ends in a bind after a measure": ("P12", bound(PLACES).graph(OTHER, 1).measure(1).call("bind", 1)),
    "it ends in a reserve of an empty tensor": (
        "P13", bound(PLACES).graph([leaf("none", size=0), tensor("a", "MUL_MAT", (0,))], 1).call("reserve", 1)),
    "bytes are reported twice": ("G3", Maker((0, 0)).graph(GRAPH).buffer().reserve(sizes=(96, 96))),
    "a measure counts twice": ("G3", Maker((0, 0)).graph(GRAPH).measure(sizes=(96, 96))),
    "a plan for another graph": ("G4", bound(PLACES).graph(OTHER, 1).bind(graph=1)),
    "bytes stay": ("G5", bound(PLACES).freed()),
    "a buffer was replaced since": ("R12", bound(PLACES).graph(OTHER, 1).free().buffer(1, 96).reserve(1).compute(
        [[1, *spot[1:]] if spot[0] == 0 else spot for spot in PLACES])),
    "a weight is gone": ("R12", bound(PLACES).free(9).compute(
        [[-2, *spot[1:]] if spot[0] == 9 else spot for spot in PLACES])),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_dump_is_blamed_on_its_clause(what: str, tmp_path: Path) -> None:
    clause, maker = BROKEN[what]
    found = verdicts(maker, tmp_path)
    assert {f.clause for f in found.findings} == {clause}, [f.message for f in found.findings]


def test_every_clause_that_is_judged_has_a_broken_dump() -> None:
    assert {clause for clause, _ in BROKEN.values()} == set(CLAUSES)


def test_a_finding_names_the_tensors(tmp_path: Path) -> None:
    (finding,) = verdicts(bound(moved(v=[0, 32, 16])), tmp_path).findings
    assert "view 4 'v'" in finding.message and "tensor 3 'b'" in finding.message
    (finding,) = verdicts(BROKEN["a buffer was replaced since"][1], tmp_path).findings
    assert "tensor 0 'x'" in finding.message and "freed at line" in finding.message


def test_a_computation_that_binds_its_graph_first_is_right(tmp_path: Path) -> None:
    """A scheduler may be given a graph of an older generation: it binds it anew before it computes."""
    maker = (
        bound(PLACES).free().buffer(1).compute([[-2, *spot[1:]] if spot[0] == 0 else spot for spot in PLACES])
    )
    maker.bind([[1, *spot[1:]] if spot[0] == 0 else spot for spot in PLACES], during=1)
    assert not verdicts(maker, tmp_path).findings


def test_allocators_that_share_are_not_blamed_for_what_is_not_theirs(tmp_path: Path) -> None:
    maker = (
        Maker()
        .add("share", allocator=0)
        .graph(GRAPH)
        .buffer(size=256)
        .reserve(sizes=(256,))
        .bind(sizes=(256,))
    )
    maker.free().buffer(1, 128).reserve(sizes=(128,)).freed()
    assert not verdicts(maker, tmp_path).findings


def test_a_program_that_ends_in_a_call_for_no_reason_to_be_seen(tmp_path: Path) -> None:
    found = verdicts(bound(PLACES).reserve().call("bind"), tmp_path)
    assert not found.findings
    assert found.unclear == ["line 10: the program ends while allocator 0 has to bind graph 0"]


def test_a_graph_out_of_order_is_not_judged(tmp_path: Path) -> None:
    graph = [leaf("x", input=True), tensor("b", src=(2,)), tensor("a", src=(0,))]
    found = verdicts(bound([[0, 0, 32], [0, 32, 32], [0, 64, 32]], graph), tmp_path)
    assert not found.findings or {f.clause for f in found.findings} == {"P14"}
    assert "comes after it" in found.unclear[0]


def test_two_runs_in_one_file_have_numbers_of_their_own(tmp_path: Path) -> None:
    first = good()
    first.rows += good().rows
    found = verdicts(first, tmp_path)
    assert not found.findings and found.binds == 4


def test_what_has_a_place_is_left_out(tmp_path: Path) -> None:
    assert BEFORE == [[1, 9, 0]]
    found = verdicts(good(), tmp_path)
    assert found.exercised["P14"] == 2
