"""Writes fuzz/known/: what the pinned release is known to break, each with a replay file.

    python -m tests.ggml.record_known

The sequences are those of test_findings.py; a case that no longer shows its clause is an error.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import NamedTuple

from gallocheck.fuzz.expected import KNOWN
from gallocheck.fuzz.judge import Judge
from gallocheck.fuzz.replay import Replay, save
from gallocheck.model.records import UNLIMITED, BufferType, Graph, Setup, Tensor, Trace
from gallocheck.native import trees

from .cases import OUT, op
from .test_findings import CASES, NEW, RESERVE, Case, types_of

TORN = Graph((Tensor(1), Tensor(1), Tensor(0, (1, 0)), Tensor(1, (2,), OUT), Tensor(1), Tensor(1, (4,), OUT)))
MORE = (
    Case("empty tensors keep free blocks apart", "P10", "", (TORN,), (op(NEW), op(RESERVE)), mended=False),
)

GONE = r"touched memory that is not mapped"
NO_BUFFER = r"aborted: .*GGML_ASSERT\(buffer\) failed"
TWICE = r"aborted: .*GGML_ASSERT\(tensor->buffer == NULL\) failed"
NO_SOURCE = r"aborted: .*GGML_ASSERT\(tensor->view_src->data != NULL\) failed"
BEYOND = r"aborted: .*GGML_ASSERT\(.*addr \+ ggml_backend_buffer_get_alloc_size.*"


META = r"aborted: ggml-backend-meta.cpp:#: GGML_ASSERT\("
TORN_META = rf"{META}bufs.back\(\) != nullptr\) failed"
NO_STATE = rf"{META}src_ss\[i\].axis != GGML_BACKEND_SPLIT_AXIS_UNKNOWN\) failed"
NO_META = rf"{META}ggml_backend_buffer_is_meta\(meta_buf\)\) failed"
NO_PART = rf"{META}ggml_backend_buffer_is_meta\(tensor->buffer\)\) failed"
OTHER_META = rf"{META}index < buf_ctx->bufs.size\(\)\) failed"
LOST = rf"{META}bcj.nodes\[i\]\) failed"


class Known(NamedTuple):
    id: str
    case: str
    title: str
    signatures: tuple[str, ...]


FINDINGS = (
    Known("F08", "empty tensor that is read", "a tensor of no bytes that another reads is bound twice and aborts",
          (rf"\w+\|\w+\|({TWICE}|{NO_SOURCE})",)),
    Known("F10", "size wraps to nothing", "a size near 2^64 wraps round when it is aligned and is planned as nothing",
          (r"P13\|\w+\|tensor # of # bytes was planned into .*", r"P13\|\w+\|tensor # (ends|at) .*",
           rf"(P13|G2|C2)\|ALLOC\|{BEYOND}")),
    Known("F01", "alloc after a failed reserve", "alloc after a failed reserve binds to buffers that are gone",
          (rf"G2\|ALLOC\|{GONE}", rf"G2\|ALLOC\|{NO_BUFFER}")),
    Known("F02", "type listed twice, failed reserve", "a failed reserve leaves the second listing of a type dangling",
          (rf"G2\|\w+\|{GONE}", r"(G2|G5)\|close\|.*", r"G2\|\w+\|aborted: .*(free|corrupt).*",
           r"G3\|(RESERVE|ALLOC)\|slot # \(type #\) reports # bytes: .*")),
    Known("F03", "measure frees buffers", "a measure frees buffers, and alloc after it uses none",
          (r"P12\|MEASURE\|a measure changes nothing", rf"P12\|ALLOC\|({GONE}|{NO_BUFFER}|{BEYOND})",
           r"P12\|ALLOC\|tensor # ends .*")),
    Known("F04", "measure counts a type twice", "measure counts a buffer type that is listed twice twice",
          (r"G3\|MEASURE\|.*",)),
    Known("F05", "other sources, old plan", "a plan is used for a graph of equal counts and sizes with other lifetimes",
          (r"G4\|ALLOC\|tensor # .*overlaps.*", r"G4\|ALLOC\|view .*", r"G4\|COMPUTE\|a graph is computed by a plan .*")),
    Known("F06", "larger leaf that nobody reads, old plan", "leafs are not compared when a plan is used again",
          (rf"G4\|ALLOC\|({GONE}|{BEYOND}|{NO_BUFFER})", r"G4\|ALLOC\|tensor # ends .*",
           r"G4\|ALLOC\|tensor # is .*")),
    Known("F07", "view is an output", "a tensor is freed although a view of it is an output that is read again",
          (r"(P5|P8)\|\w+\|tensor # .*overlaps.*to the end, as an output", r"P5\|(COMPUTE|SYNC)\|output .*")),
    Known("F09", "empty tensor, no chunk yet", "a chunk of no bytes is not made where buffers exist already",
          (rf"(P13|C2)\|(ALLOC|COMPUTE)\|{NO_BUFFER}",)),
    Known("F11", "256 free blocks", "more than 256 free blocks abort", (r"(P13|G2|C2)\|\w+\|.*out of free blocks.*",)),
    Known("F12", "empty tensors keep free blocks apart", "free blocks of no bytes keep their neighbours from joining",
          (r"P10\|\w+\|after the last node .*",)),
    Known("F13", "scheduler: alloc fails", "a failed allocation in the scheduler is a crash, not a status",
          (rf"C2\|\w+\|{GONE}",)),
    Known("F14", "scheduler of one backend frees under work in flight",
          "the scheduler's automatic reserve of one backend frees buffers under work in flight", (r"C1\|\w+\|.*",)),
    Known("F15", "scheduler: 31 inputs of a split", "a split with 31 inputs aborts",
          (r"C2\|\w+\|.*GGML_SCHED_MAX_SPLIT_INPUTS.*",)),
    Known("F17", "meta: a part cannot be had", "a meta buffer that a device refuses a part of aborts",
          (rf"\w+\|\w+\|{TORN_META}",)),
    Known("F18", "meta: empty tensor that is read", "a tensor of no bytes that another reads on a meta device aborts",
          (rf"\w+\|\w+\|({NO_STATE}|{NO_META})",)),
    Known("F19", "meta: empty tensor", "a tensor of no bytes on a meta device cannot be computed",
          (rf"P13\|COMPUTE\|{NO_PART}",)),
    Known("F20", "meta: view of a weight, two allocators",
          "views of a weight by two allocators on a meta device lose each other", (rf"(M2|P3|C2)\|COMPUTE\|{LOST}",)),
    Known("F21", "meta: another backend's view in its split",
          "a view of another backend's tensor in a meta backend's split aborts",
          (rf"(C2|C3|P3)\|COMPUTE\|({NO_PART}|{OTHER_META})",)),
    Known("F23", "meta: view of a weight, allocated again",
          "views of a weight on a meta device use up its room where a graph is allocated again and again",
          (r"(G2|C2|P13|M1)\|(ALLOC|COMPUTE)\|aborted: ggml.c:#: GGML_ASSERT\(obj_new\) failed",)),
    Known("F22", "scheduler: five computes in flight",
          "with pipeline parallelism the fifth compute in flight overwrites copies that the first still reads",
          (r"P1\|(SYNC|COMPUTE|RESERVE|ALLOC|FREE)\|source # of node # holds wrong bytes",)),
    Known("F16", "scheduler: measure forgets assignments", "measuring through the scheduler drops the caller's backends",
          (r"P12\|MEASURE\|measure gives .*", r"P12\|MEASURE\|aborted: .*buffer_id.*")),
)  # fmt: skip


def write(subject: str, variant: str, wanted: list[tuple[Known, Case]]) -> None:
    """One list and its replay files."""
    tree = trees.pinned(print)
    folder = KNOWN / f"{subject}-0.15.3"
    entries = []
    with Judge(str(trees.build(tree, variant, print))) as judge:
        for known, case in wanted:
            huge = any(t.size > 2**40 for graph in case.graphs for t in graph.tensors)
            device = BufferType(1 if known.id == "F12" else 32, capacity=2**28 if huge else UNLIMITED)
            trace = Trace(Setup(types_of(case, device), (case.slots,)), case.graphs, case.ops)
            failed = judge.judge(trace, anew=True).failed
            if failed is None or failed.clause != case.clause:
                raise SystemExit(f"{known.id} {case.name}: expected {case.clause}, seen {failed}")
            path = folder / f"{known.id}.json"
            folder.mkdir(parents=True, exist_ok=True)
            save(Replay(clause=failed.clause, verdict=failed.sort, message=failed.message, subject=judge.describe,
                        trace=trace, step=failed.step, gallocheck=version("gallocheck"), seen=failed.seen or None,
                        expected=failed.expected or None), path)  # fmt: skip
            entries.append({"id": known.id, "clause": case.clause, "title": known.title,
                            "signatures": list(known.signatures), "replay": f"{folder.name}/{path.name}"})  # fmt: skip
    listing = {"subject": subject, "matches": ["ggml 0.15.3"], "findings": entries}
    (KNOWN / f"{subject}-0.15.3.json").write_text(json.dumps(listing, indent=2) + "\n")


if __name__ == "__main__":
    cases = {case.name: case for case in (*CASES, *MORE)}
    every = [(known, cases[known.case]) for known in FINDINGS]
    write("ggml", "plain", every)
    write("ggml-resizable", "resizable", [(k, c) for k, c in every if not c.mended])
    write("ggml-group", "group", [(k, c) for k, c in every if not c.mended])
