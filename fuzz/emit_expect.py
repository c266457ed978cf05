"""The checks of an emitted program, as C++: before and after the operation that failed."""

from __future__ import annotations

from ..model.records import Kind, Op
from .emit_checks import Check
from .emit_graphs import number
from .emit_sharing import Living
from .emit_steps import Steps


def before(s: Steps, checks: tuple[Check, ...]) -> None:
    """What a check will compare with."""
    if ("unchanged",) in checks:
        s.flags.add("counts")
        s.put("const int allocated = n_allocated, freed = n_freed;")
    for n in sorted({int(str(c[1])) for c in checks if c[0] == "state"}):
        if n in s.living and s.living[n].shares:
            s.put(f"const buffer_state before{n} = {s.state(s.living[n])};")


def after(s: Steps, op: Op, checks: tuple[Check, ...]) -> None:
    """All checks, as statements."""
    start = len(s.lines)
    for check in checks:
        if check[0] != "placed":
            one(s, op, check)
    addresses = [str(c[1]) for c in checks if c[0] == "placed"]
    a = s.living.get(op.alloc)
    if a and s.shown and addresses:
        placed(s, op, a, addresses)
    s.checked = len(s.lines) > start or ("busy",) in checks


def one(s: Steps, op: Op, check: Check) -> None:
    kind, *rest = check
    a = s.living.get(op.alloc)
    if kind == "status" and s.result.startswith("ok"):
        want = bool(rest[0])
        s.put(f'expect({"" if want else "!"}{s.result}, "the call returns {str(want).lower()}");')
    elif kind == "unchanged":
        s.put('expect(n_allocated == allocated, "no buffer is allocated (%d are)", n_allocated - allocated);')
        s.put('expect(n_freed == freed, "no buffer is freed (%d are)", n_freed - freed);')
    elif kind == "buffers":
        for t, sizes in enumerate(rest[0]):  # type: ignore[arg-type, var-annotated]
            s.put(f"check_buffers(T{t}, {row(sizes)});")
    elif kind in ("reported", "measured") and a:
        by_slot(s, str(kind), a, tuple(rest[0]))  # type: ignore[arg-type]
    elif kind == "look" and a:
        for k in range(a.n_slots):
            s.put(f'fprintf(stderr, "   entry {k} has %zu bytes\\n", {has(a, k)});')
    elif kind == "state":
        state(s, int(str(rest[0])), str(rest[1]), str(rest[2]))
    elif kind == "large_enough" and a and s.shown and s.result.startswith("ok"):
        types = ", ".join(f"&T{t}" for t in s.trace.setup.configs[a.config])
        s.put(f"if ({s.result}) {{", f"    check_large_enough({s.shown}, {{ {types} }});", "}")
    elif kind in ("current", "outdated") and a:
        current(s, a, kind == "current")
    elif kind == "no_more":
        no_more(s, *(int(str(x)) for x in rest))


def row(sizes: object) -> str:
    return "{ " + ", ".join(map(number, sizes)) + " }" if sizes else "{}"  # type: ignore[call-overload]


def by_slot(s: Steps, kind: str, a: Living, want: tuple[int, ...]) -> None:
    """Bytes measured or reported for each entry of the allocator's list of buffer types."""
    for k, n in enumerate(want):
        have = f"{s.result}[{k}]" if kind == "measured" else has(a, k)
        text = f"{number(n)} bytes are {kind} for entry {k} of the list (there are %zu)"
        s.put(f'expect({have} == {number(n)}, "{text}", {have});')


def has(a: Living, k: int) -> str:
    """The call for the bytes of entry k."""
    if a.sched:
        return f"ggml_backend_sched_get_buffer_size({a.name}, {a.backends}[{k}])"
    return f"ggml_gallocr_get_buffer_size({a.name}, {k})"


def state(s: Steps, n: int, what: str, relation: str) -> None:
    """What allocator n reads; only those that take part in a pair have readings."""
    a = s.living.get(n)
    if a is None or not a.shares:
        return
    words = {">": "goes up", "==": "stays", ">=": "does not go down"}[relation]
    label = "the shrink generation" if what == "shrink" else "the generation"
    now = f"{s.state(a)}.{what}"
    values = f"(unsigned long long) before{n}.{what}, (unsigned long long) {now}"
    text = f"{label} that {a.name} reads {words} (from %llu to %llu)"
    s.put(f'expect({now} {relation} before{n}.{what}, "{text}", {values});')


def current(s: Steps, a: Living, want: bool) -> None:
    """R12: whoever holds a bound graph finds out by the generation whether it is still good."""
    if not a.bound or not a.shares:
        return
    same = f"{s.state(a)}.generation == at_{a.bound}.generation"
    said = (
        "has not changed: the graph is still good" if want else "has changed: memory of the graph was freed"
    )
    s.put(f"if ({a.bound}) {{", f'    expect({"" if want else "!"}({same}), "the generation {said}");')
    s.put(*([f"    check_all_allocated(*{a.bound});"] * want), "}")


def no_more(s: Steps, old: int, new: int, slot: int) -> None:
    """P10."""
    have, want = (has(s.living[n], slot) for n in (new, old))
    text = "the last node finds room that others have left: %zu bytes are enough (it takes %zu)"
    s.put(f'expect({have} <= {want}, "{text}", {want}, {have});')


# -- addresses of a bound graph --------------------------------------------------------


def placed(s: Steps, op: Op, a: Living, names: list[str]) -> None:
    """Checks of addresses, where the graph was bound and its buffers are still there."""
    if not any(t.prealloc for g in s.trace.graphs for t in g.tensors):
        names = [n for n in names if n != "check_weights_stay"]
    body = [
        line
        for n in names
        for line in (fresh(s, op, a) if n == "check_same_offsets" else [f"{n}({s.shown});"])
    ]
    when = s.result if op.kind == Kind.ALLOC else a.bound
    if op.kind == Kind.COMPUTE and not a.shares:
        when += f" && !is_stale({s.shown})"
    if when and body:
        s.put(f"if ({when}) {{", *(f"    {line}" for line in body), "}")


def fresh(s: Steps, op: Op, a: Living) -> list[str]:
    """P9: a new allocator binds the same graph."""
    slots = s.trace.setup.configs[a.config]
    types = ", ".join(f"&T{t}.buffer_type" for t in slots)
    s.flags.add("node_ids")
    return [
        *(f"T{t}.capacity = SIZE_MAX;" for t in sorted(set(slots)) if s.limited),
        f"ggml_backend_buffer_type_t list[] = {{ {types} }};",
        f"ggml_gallocr_t galloc = ggml_gallocr_new_n(list, {len(slots)});",
        f"test_graph fresh({s.builders.name(op.graph, a.config)});",
        "ggml_gallocr_reserve_n(galloc, fresh.graph, fresh.node_ids.data(), fresh.leaf_ids.data());",
        "ggml_gallocr_alloc_graph(galloc, fresh.graph);",
        f"check_same_offsets({s.shown}, fresh);",
        "ggml_gallocr_free(galloc);",
    ]
