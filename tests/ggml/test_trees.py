"""Trees: found or refused in one sentence, fetched whole or not at all, built once."""

from __future__ import annotations

import io
import shutil
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest
from gallocheck.native import tree_build, tree_fetch, trees


@contextmanager
def refused(code: int, *words: str) -> Iterator[None]:
    """A TreeError comes: of this exit code, one sentence, with these words in it."""
    with pytest.raises(trees.TreeError) as caught:
        yield
    text = str(caught.value)
    assert caught.value.code == code and "\n" not in text
    for word in words:
        assert word in text, text


def fake_tree(root: Path) -> Path:
    for name in ("include/ggml-alloc.h", "src/ggml-alloc.c"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    return root


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GALLOCHECK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def copy(pinned: trees.Tree, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pinned.root, tmp_path / "copy"))


# -- finding -----------------------------------------------------------------


def test_what_is_no_directory(tmp_path: Path) -> None:
    with refused(2, str(tmp_path / "gone"), "not a directory"):
        trees.locate(tmp_path / "gone")


def test_what_is_no_tree(tmp_path: Path) -> None:
    with refused(2, str(tmp_path), "contains no ggml tree"):
        trees.locate(tmp_path)


@pytest.mark.parametrize("where", ["", "ggml", "vendor/ggml", "vendor/llama.cpp/ggml"])
def test_finds_a_tree_in_a_checkout(tmp_path: Path, where: str) -> None:
    root = fake_tree(tmp_path / where)
    assert trees.locate(tmp_path).root == root.resolve()


def test_several_trees(tmp_path: Path) -> None:
    fake_tree(tmp_path / "one")
    fake_tree(tmp_path / "two")
    with refused(2, "several", "one", "two"):
        trees.locate(tmp_path)


def test_name_of_the_pinned_tree(pinned: trees.Tree) -> None:
    assert pinned.name == "ggml 0.15.3"
    assert trees.locate(pinned.root) == pinned


# -- fetching ----------------------------------------------------------------


PREFIX = "ggml_python-0.0.45/vendor/ggml/"


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo(PREFIX + "src/link.c")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return path


def test_another_archive_is_not_used(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.gz", {})
    with refused(3, "SHA-256"):
        tree_fetch.unpack(path, "0" * 64, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_only_plain_files_of_the_tree_are_unpacked(tmp_path: Path) -> None:
    at = PREFIX
    names = [
        at + "src/ggml-alloc.c",
        at + "src/../../evil.c",
        at + "examples/x.c",
        "elsewhere/src/b.c",
        "/abs/src/c.c",
    ]
    path = archive(tmp_path / "a.tar.gz", dict.fromkeys(names, b"x"))
    tree_fetch.unpack(path, sha256(path.read_bytes()).hexdigest(), tmp_path / "out")
    assert [p.relative_to(tmp_path / "out") for p in (tmp_path / "out").rglob("*.c")] == [
        Path("src/ggml-alloc.c")
    ]
    assert not list(tmp_path.rglob("evil.c"))


def test_no_network(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(own_cache))
    with refused(3, "could not be fetched", "--source"):
        trees.pinned()
    assert not list(own_cache.glob("trees/[!.]*")), "nothing half written"


def test_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GALLOCHECK_CACHE", str(tmp_path / "file"))
    with refused(3, "GALLOCHECK_CACHE"):
        trees.pinned()


# -- building ----------------------------------------------------------------


def test_no_compiler(pinned: trees.Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    with refused(3, "No C compiler"):
        trees.build(pinned)


def test_tree_that_does_not_compile(copy: Path, own_cache: Path) -> None:
    source = copy / "src" / "ggml-alloc.c"
    source.write_text("int broken(void) { return nothing; }\n" + source.read_text())
    with refused(2, "does not compile", "ggml-alloc.c:1", "nothing"):
        trees.build(trees.locate(copy))
    assert not list(own_cache.glob("subjects/*/*.so"))


def test_overlay_that_does_not_fit(copy: Path, own_cache: Path) -> None:
    source = copy / "src" / "ggml-alloc.c"
    source.write_text(source.read_text().replace("buf_tallocs", "otherwise"))
    with refused(3, "ggml-resizable is not available on ggml 0.15.3", "buf_tallocs"):
        trees.build(trees.locate(copy), "resizable")


def test_second_build_is_instant(pinned: trees.Tree, plain: Path) -> None:
    said: list[str] = []
    begin = time.monotonic()
    assert trees.build(pinned, progress=said.append) == plain
    assert time.monotonic() - begin < 10 and not said


def test_changed_source_is_another_subject(copy: Path, pinned: trees.Tree) -> None:
    def keys(tree: trees.Tree) -> list[str]:
        builder = tree_build.Builder(tree, trees.VARIANTS["plain"], lambda _: None)
        return [unit.key for unit in builder._units(builder._base_sources())]

    before = keys(trees.locate(copy))
    (copy / "include" / "ggml.h").write_text((copy / "include" / "ggml.h").read_text() + "\n")
    assert not set(before) & set(keys(trees.locate(copy)))
