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
    lines.append(f"Replay: `gallocheck replay fuzz/known/{entry.replay} --subject ggml`")
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
    return words.split("This program is ", 1)[1].split(" Build:", 1)[0]


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
