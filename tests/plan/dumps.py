"""Hand-made dumps: what the hook would write, line by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zlib import crc32

Row = dict[str, Any]
GIVEN, FREE = [-1, 0], "free"


def tensor(name: str, op: str = "ADD", src: tuple[int, ...] = (), size: int = 32, **more: Any) -> Row:
    """A node of the graph; `more`: view, offset, input, output, leaf, inplace, layout."""
    return {
        "at": crc32(name.encode()),
        "name": name,
        "op": op,
        "leaf": False,
        "bytes": size,
        "layout": f"f32 {size // 4}",
        "input": False,
        "output": False,
        "inplace": False,
        "src": list(src),
        **more,
    }


def leaf(name: str, size: int = 32, **more: Any) -> Row:
    return tensor(name, "NONE", (), size, leaf=True, **more)


#: x is read by a and c; b is computed in a's place; v shows half of b; the output reads all
GRAPH = [
    leaf("x", input=True),
    leaf("w", size=64),
    tensor("a", "MUL_MAT", (1, 0)),
    tensor("b", "SCALE", (2,), inplace=True),
    tensor("v", "VIEW", (3,), 16, view=3, offset=16),
    tensor("c", "MUL_MAT", (1, 0)),
    tensor("end", "CONCAT", (5, 4), output=True),
]
#: w has a place already (buffer 9); the rest in buffer 0: x, then a and b, c, end
PLACES = [[0, 0, 32], [9, 0, 64], [0, 32, 32], [0, 32, 32], [0, 48, 16], [0, 64, 32], [0, 0, 32]]
BEFORE = [[1, 9, 0]]


class Maker:
    """A dump under way: allocator 0 on type 0 (alignment 16), its buffer 0, the program's buffer 9."""

    def __init__(self, types: tuple[int, ...] = (0,), alignment: int = 16, most: int = 2**64 - 1) -> None:
        self.rows: list[Row] = [{"line": "start", "format": "gallocheck plan", "version": 1, "process": 7}]
        self.add("type", type=0, name="CPU", alignment=alignment, max_size=most)
        self.add("buffer", buffer=9, type=0, allocator=-1, asked=64, size=64, ok=True)
        self.add("allocator", allocator=0, types=list(types))

    def add(self, line: str, **fields: Any) -> Maker:
        self.rows.append({"line": line, **fields})
        return self

    def buffer(self, number: int = 0, size: int = 96, ok: bool = True, allocator: int = 0) -> Maker:
        return self.add(
            "buffer", buffer=number, type=0, allocator=allocator, asked=size, size=size if ok else 0, ok=ok
        )

    def free(self, number: int = 0) -> Maker:
        return self.add("free", buffer=number)

    def graph(self, tensors: list[Row], number: int = 0) -> Maker:
        nodes = sum(not t["leaf"] for t in tensors)
        leafs = [i for i, t in enumerate(tensors) if t["leaf"]]
        return self.add("graph", graph=number, nodes=nodes, tensors=tensors, leafs=leafs)

    def call(self, what: str, graph: int = 0) -> Maker:
        return self.add("call", call=what, allocator=0, graph=graph)

    def reserve(self, graph: int = 0, ok: bool = True, sizes: tuple[int, ...] = (96,)) -> Maker:
        return self.add("reserve", allocator=0, graph=graph, ok=ok, sizes=list(sizes), slots=[])

    def measure(self, graph: int = 0, sizes: tuple[int, ...] = (96,)) -> Maker:
        return self.add("measure", allocator=0, graph=graph, sizes=list(sizes), slots=[])

    def bind(
        self, places: list[list[int]] | None = None, graph: int = 0, ok: bool = True, sizes: tuple[int, ...] = (96,),
        before: list[list[int]] = BEFORE, during: int = 0,
    ) -> Maker:  # fmt: skip
        shown = (PLACES if places is None else places) if ok else []
        return self.add("bind", allocator=0, graph=graph, ok=ok, during=during, sizes=list(sizes),
                        places=shown, before=before)  # fmt: skip

    def compute(self, places: list[list[int]] = PLACES, graph: int = 0, number: int = 1) -> Maker:
        return self.add("compute", compute=number, by="backend", graph=graph, places=places)

    def freed(self) -> Maker:
        return self.add("freed", allocator=0)

    def write(self, path: Path) -> Path:
        path.write_text("".join(json.dumps(row) + "\n" for row in self.rows))
        return path


def good() -> Maker:
    """A whole life: reserved, bound, computed, and again, freed."""
    maker = Maker().graph(GRAPH).buffer().reserve().bind().compute()
    maker.reserve().bind().compute(number=2)
    return maker.free().freed()


def moved(**places: list[int]) -> list[list[int]]:
    """PLACES with some tensors elsewhere, by name."""
    names = [t["name"] for t in GRAPH]
    return [places.get(name, spot) for name, spot in zip(names, PLACES, strict=True)]


def changed(name: str, **fields: Any) -> list[Row]:
    """GRAPH with one tensor changed."""
    return [{**t, **fields} if t["name"] == name else t for t in GRAPH]
