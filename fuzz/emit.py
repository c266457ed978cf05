"""A saved failure as one C++ program against ggml's public interface, checked before it is given away.

The program is compiled and run against the tree whose subject failed, where it must be red (exit code not 0),
and where there is an allocator that is right, against that one too. What was seen stands at the program's head.

    emit_checks.py   what to check, by how the failure shows
    emit_steps.py    operations as calls
    emit_expect.py   checks as C++
    emit_graphs.py   graphs as functions that build them
    emit_parts.py    the helpers in fuzz/program/, only those that are needed
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..model.records import SIZE_MAX, UNLIMITED, BufferType, Cap, Kind, Op, OpFlag, Trace
from ..native import trees
from ..native.tree_program import Bench, Outcome
from ..native.trees import TreeError
from ..spec.clauses import clause
from .applies import lacking
from .emit_checks import Candidate, EmitError, candidates
from .emit_expect import after, before
from .emit_graphs import BEYOND, number
from .emit_parts import Part, part, render
from .emit_steps import Steps, Tree
from .judge import Judge
from .replay import Replay
from .subjects import VARIANT, Subject
from .words import describe_op

__all__ = ["EmitError", "emit_cpp"]

WIDTH = 110
HEADERS = ("ggml.h", "ggml-alloc.h", "ggml-backend.h", "ggml-backend-impl.h")
SYSTEM = (
    "algorithm",
    "climits",
    "cstdarg",
    "cstdint",
    "cstdio",
    "cstdlib",
    "string",
    "vector",
    "sys/mman.h",
    "unistd.h",
)
IN_GGML = Cap.RESIZABLE | Cap.GROUP | Cap.SCHED | Cap.REMAKE  #: what a program can drive
SHARING = {Kind.OWN, Kind.BORROW, Kind.SHRINK}


def emit_cpp(saved: Replay, target: Subject) -> str:
    """The program's text; its head comment says on which trees it was run and how it ended.

    Raises EmitError (exit code 3) where ggml has no call that could show the failure, or where the program
    is not red on `target` though that is a ggml tree; TreeError as trees.build does.
    """
    check_in_reach(saved.trace)
    ours = not target.source  # the bundled subject failed: ggml has to show nothing
    tree = trees.pinned() if ours else trees.locate(Path(target.source))
    benches = [Bench(tree, variant) for variant in variants(saved, target)]
    library = str(trees.build(tree, benches[0].variant)) if ours else target.library
    with Judge(library) as judge:
        found = best(saved, benches, ours, list(candidates(saved, judge.caps, judge.fresh)))
    if found is None and ours:
        raise EmitError("The failure shows in nothing that ggml's interface lets a program see.")
    if found is None:
        raise EmitError(
            f"The program for this failure is not red on {benches[0].name}: the failure was saved on"
            f" {saved.subject or 'another subject'}, and this subject does not show it."
        )
    text, outcomes = found
    return f"{head(saved, outcomes, benches[0].by_hand())}\n{text}"


def check_in_reach(trace: Trace) -> None:
    """Only what ggml's public interface has can be written as a program. Raises EmitError."""
    missing = lacking(trace, IN_GGML)
    if missing is not None:
        what, needs = missing
        if needs & Cap.META:
            raise EmitError(f"{what} is not written as a program: give the replay file away instead.")
        raise EmitError(
            f"{what} needs {' or '.join(str(c.name).lower() for c in Cap if c & needs)}, which ggml's interface"
            " does not have: give the replay file away instead."
        )


def variants(saved: Replay, target: Subject) -> list[str]:
    """Variants of the tree that a program is run on; the first is the one that must be red."""
    pair = saved.clause.startswith("R") or any(op.kind in SHARING for op in saved.trace.ops)
    if not target.source:
        return ["resizable"] if pair else ["plain", "resizable"]
    return [VARIANT.get(target.name, "plain")]


def best(
    saved: Replay, benches: list[Bench], ours: bool, tries: list[Candidate]
) -> tuple[str, list[tuple[str, Outcome]]] | None:
    """The first program that is red on the first bench and green where the allocator is right; else the
    first that is red. Of what failed on the bundled subject, the first program, whatever it shows."""
    red = None
    peer = None if ours else right(saved, benches[0])
    for candidate in tries:
        text = program(candidate, declared(benches[0]), hangs="did not return" in saved.message)
        if text is None:
            continue
        outcomes = [(bench.name, bench.try_out(text)) for bench in benches]
        if ours:
            return text, outcomes
        if not shows(outcomes[0][1], candidate):
            continue
        if peer is None:
            return text, outcomes
        outcomes.append((peer.name, peer.try_out(text)))
        if not outcomes[-1][1].red:
            return text, outcomes
        red = red or (text, outcomes)
    return red


def shows(outcome: Outcome, candidate: Candidate) -> bool:
    """Whether a program is red by the operation that failed, not by another."""
    steps = re.findall(r"^(\d+\. |free everything)", outcome.errors, re.MULTILINE)
    there = candidate.step < len(candidate.trace.ops)
    where = f"{candidate.step}. " if there else "free everything"
    at_end = not outcome.errors or (bool(steps) and steps[-1] == where)
    return outcome.red and (outcome.said.startswith("FAILED") or at_end)


def right(saved: Replay, bench: Bench) -> Bench | None:
    """The overlay of the same tree, which is right where the plain one fails; None where it does not fit."""
    if bench.variant != "plain" or bench.sharing or any(op.kind in SHARING for op in saved.trace.ops):
        return None
    with suppress(TreeError):
        return Bench(bench.tree, "resizable")
    return None


def declared(bench: Bench) -> Tree:
    """What the headers say."""
    return Tree(
        bench.name,
        bench.declares("ggml_gallocr_reserve_n_size"),
        bench.declares("ggml_backend_sched_reserve_size"),
        bench.parameters("ggml_backend_sched_new"),
        bench.sharing,
        bench.declares("ggml_op_alloc_size_may_expand"),
    )


# -- the text --------------------------------------------------------------------------


def program(candidate: Candidate, tree: Tree, hangs: bool = False) -> str | None:
    """A whole program without its head; None where nothing would be checked.

    Raises EmitError where the tree has no call for an operation.
    """
    steps = Steps(
        candidate,
        tree,
        lambda s, _: before(s, candidate.checks),
        lambda s, op: after(s, op, candidate.checks),
    )
    body = main_body(candidate.trace, steps)
    if candidate.checks and not steps.checked:
        return None
    types = candidate.trace.setup.types
    all_types = ", ".join(f"&T{t}" for t in range(len(types)))
    pieces: list[str | Part] = [
        *(f'#include "{name}"' for name in HEADERS),
        "",
        *(f"#include <{name}>" for name in SYSTEM),
        "",
        part("dummy"),
        f"static const size_t max_tensors = {steps.builders.most_tensors}; // of a graph",
        "",
        part("graph"),
        *(f'static dummy_backend T{t}("T{t}", {kind.alignment});' for t, kind in enumerate(types)),
        Part(("@backends",), [f"static dummy_backend * const backends[] = {{ {all_types} }};"]),
        "",
        part("checks"),
        *([part("sched")] if "sched" in steps.flags else []),
        "//\n// the failure\n",
        steps.builders.text(),
        "int main() {",
        *(["    alarm(10); // it hangs", ""] if hangs else []),
        *body,
        "",
        '    fprintf(stderr, "%s\\n", n_failed ? "not as expected" : "all as expected");',
        "    return n_failed ? 1 : 0;",
        "}",
    ]
    flags = steps.flags | abilities(candidate.trace, steps.ops) | ({"capacity"} if steps.limited else set())
    asked = "asked" if "granularity" in flags else "size"  # where nothing is rounded up they are the same
    return render(pieces, flags).replace("@ASKED@", asked)


def main_body(trace: Trace, steps: Steps) -> list[str]:
    """Settings of the dummy backends, then the operations."""
    given = [line for t, kind in enumerate(trace.setup.types) for line in settings(t, kind)]
    body = [*given, *([""] if given else []), *"\n".join(steps.main()).strip("\n").split("\n")]
    return [f"    {line}" if line else "" for line in body]


def abilities(trace: Trace, ops: tuple[Op, ...]) -> set[str]:
    """What the dummy backend has to be able to do."""
    types, tensors = trace.setup.types, [t for g in trace.graphs for t in g.tensors]
    wanted = {
        "max_size": any(t.max_size != SIZE_MAX for t in types),
        "granularity": any(t.granularity > 1 for t in types),
        "fail_nth": any(op.fail_nth for op in ops),
        "fail_types": any(op.fail_types for op in ops),
        "weights": any(t.prealloc for t in tensors),
        "no_weights": not any(t.prealloc for t in tensors),
        "alloc_size": any(t.pad or t.size >= BEYOND for t in tensors),
        "busy": any(op.flags & OpFlag.ASYNC for op in ops if op.kind == Kind.COMPUTE),
    }
    return {flag for flag, there in wanted.items() if there}


def settings(t: int, kind: BufferType) -> Iterator[str]:
    """Of a dummy backend, beyond name and alignment."""
    for name, value, default in (
        ("max_size", kind.max_size, SIZE_MAX),
        ("granularity", kind.granularity, 1),
        ("capacity", kind.capacity, UNLIMITED),
    ):
        if value != default:
            yield f"T{t}.{name} = {number(value)};"


def head(saved: Replay, outcomes: list[tuple[str, Outcome]], build: str) -> str:
    """The comment at the top: the clause, what was asked, what was seen, where the program is red or green, and
    the command `build` that compiles it, whole on a line of its own ('': there is none)."""
    rule, ops = clause(saved.clause), saved.trace.ops
    asked = describe_op(ops[saved.step], saved.trace) if saved.step < len(ops) else "free everything"
    ended = [
        f"{'red' if o.red else 'green'} on {name}" + (f" ({o})" if o.red else "") for name, o in outcomes
    ]
    paragraphs = [
        f"{rule.id}, {rule.title}: {rule.statement}",
        f"Asked: {asked}.",
        f"Seen:  {saved.message} (on {saved.subject}).",
        f"This program is {', '.join(ended)}.",
        f"Written by gallocheck {saved.gallocheck} from a saved failure.",
        "Build, in the folder that holds the tree's include/ and src/, no library needed:"
        if build
        else "Build: c++ -std=c++17 -I include -I src program.cpp, linked with ggml-base that has the overlay.",
    ]
    lines = [line for p in paragraphs for line in textwrap.wrap(p, WIDTH - 3, break_long_words=False)]
    lines += [f"    {build}"] if build else []
    return "".join(f"// {line}".rstrip("\\ ") + "\n" for line in lines)  # a backslash would go on below
