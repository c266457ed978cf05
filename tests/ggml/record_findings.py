"""Writes docs/findings.md and its programs from fuzz/known/: run it after record_known.

python -m tests.ggml.record_findings
"""

from __future__ import annotations

from pathlib import Path

from gallocheck.fuzz.emit import EmitError, emit_cpp
from gallocheck.fuzz.expected import KNOWN, Expected, load
from gallocheck.fuzz.replay import load as load_replay
from gallocheck.fuzz.subjects import resolve
from gallocheck.fuzz.words import describe_trace
from gallocheck.spec.clauses import clause

DOCS = Path(__file__).parent.parent.parent / "docs"

HEAD = """# Findings in ggml 0.15.3

What `gallocheck check --subject ggml` finds in the pinned release (`ggml-python` 0.0.45, which carries ggml 0.15.3).
Each was reached by the public C interface alone, is in the list of expected failures
(`fuzz/known/ggml-0.15.3.json`), has a replay file, and fails the check when it is gone. This page and the programs
are written by `python -m tests.ggml.record_findings`; every program was compiled and run against the pinned tree
before it was written here, and says what it showed.

Read them with care: a finding is a place where the tree does something else than the
contract, by the clause named. Whether callers can get there is said by the sequence.

"""


#: where it comes from in the tree's code, for what the sequence alone does not tell
WHY = {
    "F17": "`ggml_backend_meta_buffer_type_alloc_buffer` asserts that every device gives its part (`bufs.back() !="
    " nullptr`); `ggml_backend_meta_alloc_ctx_tensors_from_buft` does the same for weights.",
    "F18": "A tensor of no bytes has the split state UNKNOWN, and whoever reads it asserts that no source has that one"
    " (`ggml_backend_meta_get_split_state`); where it is the only tensor of its chunk, that chunk is no meta buffer at all.",
    "F19": "Its chunk has no bytes, so `ggml_backend_buft_alloc_buffer` gives a dummy buffer that is no meta buffer;"
    " `ggml_backend_meta_graph_compute` asks it for its simple tensors.",
    "F20": "Views are kept in the meta buffer of what they view: of a weight in the weights' buffer, in one of two maps"
    " used in turn, whoever made them. After a compute the next bind moves on to the other map, and the first"
    " allocator's views are not found any more.",
    "F21": "The scheduler leaves views in whatever split they fall into, and a meta backend looks up every node of a split"
    " in its own buffers. Only views of host leafs are excepted there.",
    "F22": "Before a copy `ggml_backend_sched_compute_splits` makes the split's backend wait for an event of that very"
    " backend, which is no wait, and then copies asynchronously in the order of the source's backend"
    " (`ggml_backend_tensor_copy_async`: after all that is queued there). Nothing orders that copy behind what the"
    " split's backend still reads. There are four copies, so it takes a fifth compute in flight, of another graph, and a"
    " split without inputs of the user (these are waited for by the host). A program of ours asks for no pipeline"
    " parallelism, so none is written.",
    "F23": "A map of the meta buffer is emptied by computes only; each bind of a view of a weight adds a tensor to it, and"
    " there is room for 16 a weight.",
}


def story(entry: Expected, folder: Path) -> str:
    """One finding: what is wrong, the clause, the sequence, the replay and the program."""
    replay = load_replay(KNOWN / entry.replay)
    c = clause(entry.clause)
    lines = [f"## {entry.id}: {entry.title}", "", f"**{c.id} {c.title}.** {c.statement}", ""]
    lines += [
        f"Seen at operation {replay.step}: {replay.message}.",
        "",
        "```",
        shortened(describe_trace(replay.trace)),
        "```",
        "",
    ]
    if why := WHY.get(entry.id):
        lines += [why, ""]
    lines.append(f"Replay: `gallocheck replay fuzz/known/{entry.replay} --subject ggml`")
    if entry.id == "F22":
        return "\n".join(lines) + "\n"
    try:
        program = emit_cpp(replay, resolve("ggml", None, print))
    except EmitError as error:
        lines.append(f"Program: none. {error}")
    else:
        path = folder / f"{entry.id}.cpp"
        path.write_text(program)
        lines.append(f"Program: [{path.name}]({folder.name}/{path.name}), {ran(program)}")
    return "\n".join(lines) + "\n"


def ran(program: str) -> str:
    """The program's own line about where it was red and green."""
    words = " ".join(line.removeprefix("//").strip() for line in program.splitlines()[:40])
    return words.split("This program is ", 1)[1].split(" Written by", 1)[0]


def shortened(text: str, most: int = 40) -> str:
    lines = text.splitlines()
    if len(lines) <= most:
        return text
    return "\n".join([*lines[:12], f"  ... {len(lines) - 18} more lines ...", *lines[-6:]])


if __name__ == "__main__":
    folder = DOCS / "findings"
    folder.mkdir(exist_ok=True)
    known = load(KNOWN / "ggml-0.15.3.json").findings
    page = HEAD + "\n".join(story(entry, folder) for entry in sorted(known, key=lambda e: e.id))
    (DOCS / "findings.md").write_text(page)
