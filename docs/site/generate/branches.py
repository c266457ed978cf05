"""The page of the model's branches: each way through each of them, with the shortest sequence that takes it."""

from __future__ import annotations

from collections.abc import Iterator

from gallocheck.fuzz.witness import Unreached, Witness, unreached, witnesses
from gallocheck.fuzz.words import describe_op, describe_trace
from gallocheck.model.records import Kind
from gallocheck.spec.branches import Site, Way, sites

from .code import function_at, source
from .markdown import details, fence, page, plain, plural, table


class NoWitness(Exception):
    """A branch has neither a witness nor a reason why there is none. One sentence."""


def pages() -> dict[str, str]:
    """By name, the index and a page a file of the model. Raises NoWitness."""
    reached = shortest()
    never = {u.goal: u for u in unreached() if isinstance(u.goal, Way)}
    files = list(dict.fromkeys(site.file for site in sites()))
    found = {slug(file): file_page(file, reached, never) for file in files}
    rows = []
    for file in files:
        mine = [n for site, n in sites().items() if site.file == file]
        met = sum(way.site.file == file for way in reached)
        rows.append([f"[model/{file}]({slug(file)}.md)", str(len(mine)), str(sum(mine)), str(met)])
    found["index"] = page(
        "# Every branch of the model",
        f"The model's rules branch at {len(sites())} places, with {sum(sites().values())} ways through them in all. For"
        " each way Z3 found the shortest sequence of operations that takes it; `make test` replays the sequences on"
        f" every subject. {len(reached)} ways have a witness, {len(never)} have a reason why there is none.",
        table(["file", "branches", "ways", "with a witness"], rows),
        "```{toctree}\n:hidden:\n:titlesonly:\n\n" + "\n".join(map(slug, files)) + "\n```",
    )
    return found


def slug(file: str) -> str:
    return file.removesuffix(".py").replace("/", "-")


def file_page(file: str, reached: dict[Way, Witness], never: dict[Way, Unreached]) -> str:
    parts = [
        f"# Branches of model/{file}",
        "Each branch as it is written, then its ways. *Taken by the machine alone*: a layer around the rules answers"
        " the same before it asks them, so that no subject can be brought there.",
    ]
    for site, arms in sites().items():
        if site.file == file:
            parts += branch(site, arms, reached, never)
    return page(*parts)


def shortest() -> dict[Way, Witness]:
    """By way, the witness with the fewest operations; one that a subject can run, where there is one."""
    found: dict[Way, Witness] = {}
    for w in witnesses():
        for way in w.ways:
            if way not in found or cost(w) < cost(found[way]):
                found[way] = w
    return found


def cost(w: Witness) -> tuple[bool, bool, int]:
    return w.trace is None, not w.taken, len(w.trace.ops if w.trace else w.walk)


def branch(site: Site, arms: int, reached: dict[Way, Witness], never: dict[Way, Unreached]) -> Iterator[str]:
    f = function_at(f"model/{site.file}", site.line)
    text = source(f"model/{site.file}").splitlines()[site.line - 1].strip()
    where = f"{plain(f.name)}, " if f else ""
    mine = sorted({w for w in (*reached, *never) if w.site == site})
    if len(mine) < arms:
        raise NoWitness(
            f"model/{site.file} line {site.line}: {len(mine)} of {arms} ways have a witness or a reason;"
            " run python -m gallocheck.fuzz.witness."
        )
    yield f"## {where}line {site.line}"
    yield fence(text, "python")
    for way in mine:
        yield from one_way(way, arms, reached, never)


def one_way(way: Way, arms: int, reached: dict[Way, Witness], never: dict[Way, Unreached]) -> Iterator[str]:
    name = arm(way, arms)
    if way not in reached:
        u = never[way]
        why = "proved: no lawful step from any state with the invariants takes it" if u.proved else (
            f"not taken within {u.depth} operations from the start"
        )  # fmt: skip
        yield f"- {name}: {why} ({plain(', '.join(u.machines))})"
        return
    w = reached[way]
    if w.trace is None:
        walk = "\n".join(f"{n}. {words}" for n, words in enumerate(w.walk))
        yield details(f"{name}: a walk of the machine {w.machine} alone", fence(walk))
        return
    alone = "" if w.taken else ", taken by the machine alone"
    text = f"{describe_trace(w.trace)}\n<- here: {describe_op(w.trace.ops[w.step], w.trace)}"
    yield details(f"{name}: after {plural(len(w.trace.ops), 'operation')}{alone}", fence(text))


def arm(way: Way, arms: int) -> str:
    if way.arm == -1:
        return "none of the cases"
    if arms == 2 and way.arm in (0, 1):
        return "where it holds" if way.arm else "where it does not"
    return Kind(way.arm).name if way.arm in list(Kind) else f"case {way.arm}"
