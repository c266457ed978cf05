"""Operations of a trace as plain calls of ggml's interface, and the checks after the one that failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..model.records import UNLIMITED, Kind, Op, OpFlag
from .emit_checks import Candidate, EmitError
from .emit_graphs import Builders, number
from .emit_sharing import Living, Sharing, attach, flag, shrink, state
from .words import describe_op


@dataclass(frozen=True, slots=True)
class Tree:
    """What a tree's headers declare, as far as it matters to a program."""

    name: str
    measures: bool
    sched_measures: bool
    sched_parameters: int
    sharing: Sharing
    inplace_may_expand: bool


Writer = Callable[["Steps", Op], None]  #: writes what comes before or after the operation that failed


class Steps:
    """Writes the body of main(). `flags` and `builders` say which helpers it needs."""

    def __init__(self, candidate: Candidate, tree: Tree, before: Writer, after: Writer) -> None:
        self.trace, self.step = candidate.trace, candidate.step
        self.tree, self.before, self.after = tree, before, after
        self.ops = self.trace.ops[: self.step + 1]
        self.builders = Builders(self.trace, tree.inplace_may_expand)
        self.flags: set[str] = set()
        self.living: dict[int, Living] = {}
        self.lines: list[str] = []
        self.groups: list[str] = []
        self.checked = False  # whether anything is checked
        self.streams = 0
        self.computes = {op.alloc for op in self.ops if op.kind == Kind.COMPUTE}
        self.result = ""  # the variable with the last call's result
        self.shown = ""  # the graph that the last call was about, as an lvalue

    def main(self) -> list[str]:
        """The lines of main()'s body."""
        for i, op in enumerate(self.ops):
            self.one(i, op)
        self.put("", 'step("free everything");')
        for a in self.living.values():
            self.free(a)
        self.put(*(f"ggml_gallocr_shared_buffers_free({group});" for group in self.groups))
        if self.step >= len(self.trace.ops):
            self.after(self, Op(Kind.LOOK))
        return self.lines

    def put(self, *lines: str) -> None:
        self.lines += lines

    def one(self, i: int, op: Op) -> None:
        """One operation, with what is checked if it is the one that failed."""
        writer = self.writer(op)
        if writer is None:
            return  # no call: the allocator is not there, or knows no such thing
        last = i == self.step
        self.put("", *(["// this is where it goes wrong"] if last else []))
        self.put(f'step("{i}. {describe_op(op, self.trace)}");')
        if last:
            self.before(self, op)
        if op.fail_nth:
            self.put(f"fail_in = {op.fail_nth};")
        failing = [t for t in range(len(self.trace.setup.types)) if op.fail_types >> t & 1]
        self.put(*(f"T{t}.fails = true;" for t in failing))
        self.result = self.shown = ""
        writer(i, op)
        if op.fail_nth:
            self.put("fail_in = 0;")
        self.put(*(f"T{t}.fails = false;" for t in failing))
        if last:
            self.after(self, op)

    def writer(self, op: Op) -> Callable[[int, Op], None] | None:
        """What writes the operation; None where the harness itself would call it misuse."""
        if op.kind == Kind.CAPACITY:
            return self.capacity
        if op.kind == Kind.NEW:
            return None if op.alloc in self.living else self.new
        if op.alloc not in self.living:
            return None
        a = self.living[op.alloc]
        if op.kind in (Kind.SYNC, Kind.RESET) and not a.sched:
            return None
        if op.kind == Kind.SHRINK and not a.shares:
            return None
        if op.kind == Kind.BORROW:
            other = self.living.get(op.other)
            if other is None or other is a or other.sched != a.sched:
                return None
        if op.kind == Kind.COMPUTE and not a.bound:
            return None
        return {
            Kind.FREE: self.release,
            Kind.OWN: self.own,
            Kind.BORROW: self.borrow,
            Kind.RESERVE: self.reserve,
            Kind.MEASURE: self.measure,
            Kind.ALLOC: self.alloc,
            Kind.COMPUTE: self.compute,
            Kind.SHRINK: self.shrink,
            Kind.LOOK: self.look,
            Kind.SYNC: self.sync,
            Kind.RESET: self.reset,
            Kind.REMAKE: self.remake,
        }[op.kind]

    @property
    def limited(self) -> bool:
        """Whether some device can run out of memory."""
        fixed = all(t.capacity == UNLIMITED for t in self.trace.setup.types)
        return not fixed or any(op.kind == Kind.CAPACITY for op in self.ops)

    # -- allocators --------------------------------------------------------------

    def new(self, i: int, op: Op) -> None:
        slots = self.trace.setup.configs[op.other]
        sched = bool(op.flags & OpFlag.BY_SCHED)
        name = f"{'sched' if sched else 'galloc'}{op.alloc}" + (
            f"_{i}" if f"c{op.alloc} =" in "".join(self.lines) else ""
        )
        a = self.living[op.alloc] = Living(name, op.other, slots, sched)
        types = ", ".join(f"&T{t}.buffer_type" for t in slots)
        if sched:
            self.new_sched(a, i, op, types)
        elif len(slots) == 1:
            self.put(f"ggml_gallocr_t {name} = ggml_gallocr_new({types});")
        else:
            self.flags.add("node_ids")
            self.put(f"ggml_backend_buffer_type_t bufts{i}[] = {{ {types} }};")
            self.put(f"ggml_gallocr_t {name} = ggml_gallocr_new_n(bufts{i}, {len(slots)});")
        if op.alloc in self.computes:
            self.put(f"test_graph * bound_{name} = nullptr;")

    def new_sched(self, a: Living, i: int, op: Op, types: str) -> None:
        """A backend for each slot; the graph size is twice the largest graph's."""
        slots = self.trace.setup.configs[op.other]
        self.flags.add("sched")
        a.backends = f"backends{i}"
        names = []
        for k, t in enumerate(slots):
            names.append(f"b{i}_{k}")
            last = "true" if k == len(slots) - 1 else "false"
            self.put(f"dummy_stream {names[-1]}(T{t}, {last}, {self.streams});")
            self.streams += 1
        size = max([64, *(2 * len(g.tensors) for g in self.trace.graphs)])
        more = "".join(", false" for _ in range(self.tree.sched_parameters - 4))
        self.put(
            f"ggml_backend_t {a.backends}[] = {{ {', '.join(f'&{n}.backend' for n in names)} }};",
            f"ggml_backend_buffer_type_t bufts{i}[] = {{ {types} }};",
            f"ggml_backend_sched_t {a.name} = ggml_backend_sched_new({a.backends}, bufts{i}, {len(slots)}, {size}{more});",
        )

    def release(self, i: int, op: Op) -> None:
        self.free(self.living.pop(op.alloc))

    def free(self, a: Living) -> None:
        if a.sched:
            self.put(f"ggml_backend_sched_synchronize({a.name});", f"ggml_backend_sched_free({a.name});")
        else:
            self.put(f"ggml_gallocr_free({a.name});")

    def attach(self, i: int, op: Op, owner: Living | None) -> None:
        a = self.living[op.alloc]
        members = sum(owner is not None and x.group == owner.group for x in self.living.values())
        lines = attach(self.tree.sharing, self.tree.name, a, owner, i, members)
        if lines:
            self.put(*lines)
            self.result = f"ok{i}" if a.attached else ""
            self.groups += [a.group] if a.founder else []

    def own(self, i: int, op: Op) -> None:
        self.attach(i, op, None)

    def borrow(self, i: int, op: Op) -> None:
        self.attach(i, op, self.living[op.other])

    def shrink(self, i: int, op: Op) -> None:
        self.put(*shrink(self.living[op.alloc]))

    def state(self, a: Living) -> str:
        """The expression for what an owner or a borrower reads."""
        self.flags.add(flag(a))
        return state(a)

    def remake(self, i: int, op: Op) -> None:
        raise EmitError(
            "The failure needs an owner that is made anew under its borrower, for which ggml has no call."
        )

    # -- graphs --------------------------------------------------------------------

    def instance(self, i: int, graph: int, a: Living) -> str:
        """A graph to hand over: ggml binds each only once. A scheduler forgets what it had."""
        self.put(f"test_graph g{i}({self.builders.name(graph, a.config)});")
        if a.sched:
            self.put(f"ggml_backend_sched_reset({a.name});", f"place({a.name}, {a.backends}, g{i});")
        self.shown = f"g{i}"
        return f"g{i}.graph"

    def ids(self, i: int, a: Living) -> str:
        return f"g{i}.node_ids.data(), g{i}.leaf_ids.data()" if a.n_slots > 1 else "NULL, NULL"

    def reserve(self, i: int, op: Op) -> None:
        a = self.living[op.alloc]
        a.planned |= op.kind != Kind.MEASURE
        graph = self.instance(i, op.graph, a)
        if a.sched:
            call = f"ggml_backend_sched_reserve({a.name}, {graph})"
            self.drop(a)
        elif a.n_slots == 1:
            call = f"ggml_gallocr_reserve({a.name}, {graph})"
        else:
            call = f"ggml_gallocr_reserve_n({a.name}, {graph}, {self.ids(i, a)})"
        self.called(i, call)

    def measure(self, i: int, op: Op) -> None:
        a = self.living[op.alloc]
        if not (self.tree.sched_measures if a.sched else self.tree.measures):
            raise EmitError(
                f"The failure needs a measure (sizes only), for which {self.tree.name} has no call."
            )
        graph = self.instance(i, op.graph, a)
        self.put(f"size_t sizes{i}[{a.n_slots}] = {{}};")
        if a.sched:
            self.put(f"ggml_backend_sched_reserve_size({a.name}, {graph}, sizes{i});")
            self.drop(a)
        else:
            self.put(f"ggml_gallocr_reserve_n_size({a.name}, {graph}, {self.ids(i, a)}, sizes{i});")
        self.result = f"sizes{i}"

    def alloc(self, i: int, op: Op) -> None:
        a = self.living[op.alloc]
        a.planned |= op.kind != Kind.MEASURE
        graph = self.instance(i, op.graph, a)
        self.called(i, f"ggml_{'backend_sched' if a.sched else 'gallocr'}_alloc_graph({a.name}, {graph})")
        a.graph, a.lapsed, a.was_reset = op.graph, False, False
        if any(later.kind == Kind.COMPUTE and later.alloc == op.alloc for later in self.ops[i + 1 :]):
            self.note_bound(i, a)

    def note_bound(self, i: int, a: Living) -> None:
        """The program keeps what was bound, and the generation that was read then (R12)."""
        target = f"bound_{a.name}"
        if a.shares:
            if not a.bound:
                self.put(f"buffer_state at_{target} = {{}};")
            inner = [f"at_{target} = {self.state(a)};"]
        else:
            inner = [f"note_buffers(g{i});"]
        if a.sched and a.bound:
            self.put(f"{target} = nullptr; // a scheduler forgets it, even if it then fails")
        self.put(f"if (ok{i}) {{", *(f"    {x}" for x in [f"{target} = &g{i};", *inner]), "}")
        a.bound = target

    def called(self, i: int, call: str) -> None:
        self.put(f"bool ok{i} = {call};", f'fprintf(stderr, "   returns %s\\n", ok{i} ? "true" : "false");')
        self.result = f"ok{i}"

    def compute(self, i: int, op: Op) -> None:
        """What is bound and still current is run; a scheduler that has forgotten it binds it again (C4)."""
        a = self.living[op.alloc]
        self.flags.add("compute")
        same = f"{self.state(a)}.generation == at_{a.bound}.generation" if a.shares else ""
        current = same or f"!is_stale(*{a.bound})"
        when = a.bound if op.flags & OpFlag.UNCHECKED else f"{a.bound} && {current}"
        self.shown = f"*{a.bound}"
        if not a.sched:
            self.put(f"if ({when}) {{", f"    touch_all(*{a.bound});", "}")
            return
        call = f"ggml_backend_sched_graph_compute{'_async' if op.flags & OpFlag.ASYNC else ''}"
        if a.lapsed:
            self.compute_again(i, a, call)
            return
        self.put(f"if ({when}) {{", f"    {call}({a.name}, {a.bound}->graph);", "}")

    def compute_again(self, i: int, a: Living, call: str) -> None:
        """C4. Where leafs are given or several types are wanted, the graph is allocated first, as a caller would."""
        graph, slots = self.instance(i, a.graph, a), self.trace.setup.configs[a.config]
        tensors = self.trace.graphs[a.graph].tensors
        if any(t.leaf and not t.prealloc for t in tensors) or len(set(slots)) > 1:
            self.put(f"bool ok{i} = {a.bound} && ggml_backend_sched_alloc_graph({a.name}, {graph});")
            self.put(f"if (ok{i}) {{", f"    {call}({a.name}, {graph});", "}")
        else:
            self.put(f"bool ok{i} = {a.bound} && {call}({a.name}, {graph}) == GGML_STATUS_SUCCESS;")
        self.note_bound(i, a)
        a.lapsed = False
        self.shown = f"*{a.bound}"

    def drop(self, a: Living) -> None:
        """A scheduler is told about another graph: what it had is dropped."""
        a.lapsed = True
        if a.was_reset:
            a.bound = ""

    # -- the rest --------------------------------------------------------------------

    def capacity(self, i: int, op: Op) -> None:
        self.put(f"T{op.other}.capacity = {size(op.value)};")

    def look(self, i: int, op: Op) -> None:
        """Nothing is called."""

    def sync(self, i: int, op: Op) -> None:
        self.put(f"ggml_backend_sched_synchronize({self.living[op.alloc].name});")

    def reset(self, i: int, op: Op) -> None:
        a = self.living[op.alloc]
        self.put(f"ggml_backend_sched_reset({a.name});")
        a.lapsed = a.was_reset = True


def size(n: int) -> str:
    return "SIZE_MAX" if n == UNLIMITED else number(n)
