"""Graphs of a trace as C++ functions that build them, with names that tell what each tensor is."""

from __future__ import annotations

from ..model.records import Flag, Graph, Setup, Tensor, Trace, has

#: sizes from here on are told to ggml as a large number that stands for them (native/ggml/graph.cpp does the same)
BEYOND = 2**62 + 2**32


def tensor_name(i: int, t: Tensor) -> str:
    """'in0', 'weight1', 'leaf2', 'view3', 'out4', 'n5'."""
    if t.view:
        kind = "out_view" if t.output else "view"
    elif t.leaf:
        kind = "weight" if t.prealloc else "in" if t.input else "leaf"
    else:
        kind = "out" if t.output else "n"
    return f"{kind}{i}"


def huge_sizes(trace: Trace) -> list[int]:
    """Different sizes that ggml's integers cannot hold, in the order of the trace."""
    return list(dict.fromkeys(t.size for g in trace.graphs for t in g.tensors if t.size >= BEYOND))


class Builders:
    """The functions that build graphs: one for each graph, or for each way in which configs place it."""

    def __init__(self, trace: Trace, inplace_may_expand: bool) -> None:
        self.trace, self.inplace_may_expand = trace, inplace_may_expand
        self.huge = huge_sizes(trace)
        self.bodies: dict[str, str] = {}  # body: name of the function
        self.graphs: list[Graph] = []

    def name(self, number: int, config: int) -> str:
        """The function for a graph on a config's buffer types; written where it is new."""
        graph = self.trace.graphs[number]
        body = self.body(graph, config)
        if body not in self.bodies:
            name = f"graph_{number}"
            taken = set(self.bodies.values())
            self.bodies[body] = name if name not in taken else f"{name}_on_{config}"
            self.graphs.append(graph)
        return self.bodies[body]

    def text(self) -> str:
        return "\n".join(
            f"static void {name}(test_graph & g) {{\n{body}}}\n" for body, name in self.bodies.items()
        )

    @property
    def most_tensors(self) -> int:
        return max([1, *(len(g.tensors) for g in self.graphs)])

    def body(self, graph: Graph, config: int) -> str:
        lines = [line for i in range(len(graph.tensors)) for line in self.tensor(graph, i, config)]
        return "".join(f"    {line}\n" for line in lines) or "    (void) g; // empty\n"

    def tensor(self, graph: Graph, i: int, config: int) -> list[str]:
        """The lines that make one tensor."""
        t, slots = graph.tensors[i], self.trace.setup.configs[config]
        root = graph.tensors[t.view_src] if t.view else t
        slot = root.slot % len(slots)
        extra = self.extra(graph, i)
        made = f"g.{self.call(graph, i, slot, self.trace.setup, config)};"
        read = any(i in (*u.src, u.view_src) for u in graph.tensors) or extra
        return [f"ggml_tensor * {tensor_name(i, t)} = {made}" if read else made, *extra]

    def call(self, graph: Graph, i: int, slot: int, setup: Setup, config: int) -> str:
        t = graph.tensors[i]
        args = [f'"{tensor_name(i, t)}"']
        where = [str(slot)] if slot else []
        if t.view:
            root = graph.tensors[t.view_src]
            hidden = root.size >= BEYOND
            args += [tensor_name(t.view_src, root), self.view_size(t, root), number(t.view_offs), *where]
            return f"view{'_of_huge' if hidden else ''}({', '.join(args)})"
        args.append(self.told(t.size))
        if t.prealloc:
            return f"weight({', '.join([*args, f'T{setup.configs[config][slot]}', *where])})"
        if t.leaf:
            return f"{'input' if t.input else 'leaf'}({', '.join([*args, *where])})"
        args.append(
            "{ " + ", ".join(tensor_name(s, graph.tensors[s]) for s in t.src) + " }" if t.src else "{}"
        )
        return f"{'node_inplace' if self.in_place(t) else 'node'}({', '.join([*args, *where])})"

    def extra(self, graph: Graph, i: int) -> list[str]:
        """Flags and sizes beyond what makes the tensor."""
        t = graph.tensors[i]
        name = tensor_name(i, t)
        lines = []
        if not t.view and (t.pad or t.size >= BEYOND):
            lines.append(f"set_alloc_size({name}, {number(t.alloc_size)});")
        if has(t.flags, Flag.LAYOUT):
            lines.append(f"set_other_layout({name});")
        if t.output:
            lines.append(f"ggml_set_output({name});")
        return lines

    def in_place(self, t: Tensor) -> bool:
        """Some trees take the buffer type's word on sizes only for operations that are not done in place."""
        return t.inplace and (t.size < BEYOND or not self.inplace_may_expand)

    def told(self, size: int) -> str:
        return number(size) if size < BEYOND else f"huge + {self.huge.index(size)}"

    def view_size(self, t: Tensor, root: Tensor) -> str:
        """As it is, or of a root that ggml cannot measure what it may be told."""
        there = root.size if root.size < BEYOND else 2**62 + self.huge.index(root.size)
        want = t.size if t.size < BEYOND else 2**62 + self.huge.index(t.size)
        fits = t.view_offs <= there and want <= there - t.view_offs
        return self.told(t.size) if fits else "0"


def number(n: int) -> str:
    """A C++ literal."""
    return f"{n}u" if n >= 2**63 else str(n)
