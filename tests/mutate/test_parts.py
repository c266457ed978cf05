"""What makes a mutant one: compiled to other code, told apart in the list, kept in the store, counted in the score."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from gallocheck.fuzz.mutants.alike import shown
from gallocheck.fuzz.mutants.catalogue import LISTED, Beyond, Known, Listed, chosen, of_source, plain
from gallocheck.fuzz.mutants.errors import MutantsError
from gallocheck.fuzz.mutants.grows import varied
from gallocheck.fuzz.mutants.report import percentile, report
from gallocheck.fuzz.mutants.sources import NOWHERE, Source, digest, names, unbuilt
from gallocheck.fuzz.mutants.store import NAME, Row, Store
from gallocheck.fuzz.mutants.trial import KILLED, SAME, SURVIVED, Outcome
from gallocheck.fuzz.verdict import Verdict
from gallocheck.model.records import BufferType, Kind, Observation, Op, PoolKind, Setup, Status, Trace
from gallocheck.native.packet import Run, StepSeen

TEXT = "int f(int a) {\n    int n = 0;\n    for (int i = 0; i < a; i++) n += 2;\n    if (n < 0) n = 0;\n    return n;\n}\n"


def source(at: Path, text: str = TEXT) -> Source:
    path = at / "x.c"
    path.write_text(text)
    return Source("x.c", path, text, replace_parts(path))


def replace_parts(path: Path):  # type: ignore[no-untyped-def]
    return NOWHERE._replace(source=path, compiles=("cc", "-std=c11"), link=("cc", "-shared"))


def test_equal_code_is_seen(tmp_path: Path) -> None:
    """What the compiler makes of a slip is compared: dead and renamed things are none."""
    s = source(tmp_path)
    original = s.assembly(s.text, tmp_path)
    assert original is not None
    same = s.assembly(s.text.replace("int n = 0;", "int k = 3; int n = 0; k++;"), tmp_path)
    other = s.assembly(s.text.replace("+= 2", "+= 3"), tmp_path)
    assert same == original != other and digest(same or "") == digest(original)
    assert s.assembly(s.text.replace("return", "retrun"), tmp_path) is None
    assert s.assembly(s.text, tmp_path) == original and s.link(tmp_path, tmp_path / "x.so")


def test_the_original_is_never_touched(tmp_path: Path) -> None:
    s, build = source(tmp_path), tmp_path / "build"
    build.mkdir()
    assert s.assembly("int g;", build) is not None and s.path.read_text() == TEXT


def test_every_file_of_the_bundled_allocator_has_slips() -> None:
    for name in names("bundled"):
        assert of_source(unbuilt("bundled", None, name)), name


def test_a_larger_sample_contains_the_smaller(tmp_path: Path) -> None:
    every = of_source(source(tmp_path))
    few, more = chosen(every, 1, 3), chosen(every, 1, 6)
    assert more[:3] == few != chosen(every, 2, 3) and chosen(every, 1, None)[:6] == more
    assert len({m.key for m in every}) == len(every)


def test_score_and_survivors(tmp_path: Path) -> None:
    every = of_source(source(tmp_path))[:5]
    a, b, c, d, _ = every
    broken = Verdict("broken", "P3", "x", 0, "ALLOC")
    rows = {
        a.key: Row(a.key, KILLED, "1", "", 2.0, 9, 1, broken),
        b.key: Row(b.key, SURVIVED, "2", "", 5.0, 9, 1, None),
        c.key: Row(c.key, SURVIVED, "3", "", 5.0, 9, 1, None),
        d.key: Row(d.key, SAME, "", "", 0.0, 0, 0, None),
    }
    listed = tmp_path / "listed.json"
    entry = Listed("x.c", f"  {c.was}  ", c.becomes.replace(" ", "   "), "it changes nothing")
    listed.write_bytes(msgspec.json.encode([entry]))
    found = report(every, rows, Known(listed))
    assert (found.whole.killed, found.whole.survived, found.whole.listed, found.whole.same) == (1, 1, 1, 1)
    assert found.whole.score == 0.5 and found.survivors == [b] and found.open == 1
    assert found.listed == [(c, "it changes nothing")] and found.clauses == {"P3": [2.0]} and not found.stale
    rows[c.key] = replace(rows[c.key], state=KILLED, verdict=broken)
    assert report(every, rows, Known(listed)).stale == [c], "listed, but a check tells it apart"


def test_places_that_are_alike_are_told_apart(tmp_path: Path) -> None:
    """By the lines above; functions that the contract is not about have no slips, however they are written."""
    text = "int g(int a) {\n    a++;\n    a = 1;\n    return a;\n}\n"
    text += "struct s {\n    int one(int a) { return a + 1; }\n    int f(int a) {\n"
    text += "        a++;\n        a = 1;\n        return a;\n    }\n};\n"
    every, listed, beyond = source(tmp_path, text), tmp_path / "listed.json", tmp_path / "beyond.json"
    listed.write_bytes(msgspec.json.encode([Listed("x.c", "a = 1;", ";", "why", "int f(int a) { a++;")]))
    beyond.write_text("[]")
    known, made = Known(listed), of_source(every, beyond)
    assert [m.line for m in made if known.why(m)] == [10]
    beyond.write_bytes(msgspec.json.encode([Beyond("x.c", ["one", "f"], "why")]))
    assert {m.line for m in of_source(every, beyond)} == {m.line for m in made if m.line < 6}


def test_runs_that_show_the_same() -> None:
    """Everything counts but where a pool's range lies; that it stays there counts."""
    trace = Trace(Setup((BufferType(32),), ((0,),)), (), (Op(Kind.POOL_ALLOC), Op(Kind.POOL_ALLOC)))

    def run(*seen: tuple[int, int], leaked: int = 0) -> int:
        steps = [StepSeen(Observation(Status.DONE, base=b, address=a, out=128), {}) for b, a in seen]
        return shown(trace, Run(steps, leaked))

    assert run((4096, 4224), (4096, 4352)) == run((8192, 8320), (8192, 8448)) != 0
    assert run((4096, 4224), (4096, 4352)) != run((4096, 4224), (4096, 4353))
    assert run((4096, 4224), (4096, 4352)) != run((4096, 4224), (8192, 8448))
    assert run((4096, 4224)) == run((4096, 4224), (4096, 4352), leaked=1) == 0, "it ended early"


def test_sessions_of_every_kind_come_first() -> None:
    plain, pools = (
        Setup((BufferType(32),), ((0,),)),
        Setup((BufferType(32),), ((0,),), pool=PoolKind.VMM_POOL),
    )
    a, b = (Trace(plain, (), (Op(Kind.NEW),) * n) for n in (2, 1))
    c = Trace(pools, (), (Op(Kind.NEW),) * 3)
    assert set(map(id, varied([a, b, c])[:2])) == {id(b), id(c)} and len(varied([a, b, c])) == 3


def test_percentile() -> None:
    assert percentile([], 0.5) == 0.0 and percentile([3.0], 0.95) == 3.0
    hundred = [float(n) for n in range(100, 0, -1)]
    assert percentile(hundred, 0.5) == 50.0 and percentile(hundred, 0.95) == 95.0


def test_the_list_that_comes_with_it() -> None:
    """Every entry is of a slip that is made of the file, where the file is here; and says why."""
    entries = msgspec.json.decode(LISTED.read_bytes(), type=list[Listed])
    known = Known()
    for name in names("bundled"):
        mine = {change for change in known.by_change if change[0] == name}
        made = of_source(unbuilt("bundled", None, name)) if mine else []
        assert {(m.source.name, plain(m.was), plain(m.becomes)) for m in made if known.why(m)} == mine, name
    assert all(e.why.strip() for e in entries)


def test_the_store_keeps_and_refuses(tmp_path: Path) -> None:
    with Store(tmp_path / "a") as store:
        store.begin({"subject": "bundled", "seed": 1})
        store.put(Outcome("k", SURVIVED, "d", checked_s=1.0, operations=3, traces=2))
        with pytest.raises(MutantsError, match="in use"):
            Store(tmp_path / "a")
    with Store(tmp_path / "a") as store:
        assert (
            store.rows()["k"] == Row("k", SURVIVED, "d", "", 1.0, 3, 2, None) and store.facts.get("seed") == 1
        )
        with pytest.raises(MutantsError, match=r"another subject \(bundled, now ggml\)"):
            store.begin({"subject": "ggml"})
        store.forget(["k"])
        assert not store.rows()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / NAME).write_text("a diary" * 999)
    with pytest.raises(MutantsError, match="--out"):
        Store(tmp_path / "b")
