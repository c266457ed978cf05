"""Owner and borrower as calls: of the resizable pair, or of the shared group that older trees have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .emit_checks import EmitError

Sharing = Literal["pair", "group", ""]  #: which of the contract's interfaces a tree's headers declare


@dataclass
class Living:
    """An allocator as the program knows it.

    `bound`: the variable that points at the bound graph, '' where there is none yet. `attached`: variables that
    tell whether it has become owner or borrower. `group`: the variable of its group.
    """

    name: str
    config: int
    types: tuple[int, ...]
    sched: bool
    backends: str = ""
    bound: str = ""
    graph: int = -1  # what it was asked to bind last
    lapsed: bool = False  # scheduler: it has dropped that graph since, and has to bind it again
    was_reset: bool = False
    planned: bool = False  # a reserve or an alloc was tried
    shares: bool = False
    founder: bool = False
    attached: list[str] = field(default_factory=list)
    group: str = ""

    @property
    def n_slots(self) -> int:
        return len(self.types)


def attach(
    sharing: Sharing, tree: str, a: Living, owner: Living | None, i: int, members: int
) -> list[str] | None:
    """The lines that make `a` an owner (`owner` None) or a borrower; None where no call may be made.

    A pair's call has a result, ok{i}. A group has none: what it must not be called for is left out.
    Raises EmitError where the tree has neither.
    """
    if not sharing:
        raise EmitError(
            f"The failure needs an owner or a borrower, and the headers of {tree} declare neither the resizable"
            " pair nor the shared group; replay it with --subject ggml-resizable."
        )
    if sharing == "pair":
        a.shares = True
        a.attached.append(f"ok{i}")
        call = f"ggml_{kind(a)}_set_resizable({a.name}, {owner.name if owner else 'NULL'})"
        return [f"bool ok{i} = {call};", f'fprintf(stderr, "   returns %s\\n", ok{i} ? "true" : "false");']
    if (
        a.shares
        or a.planned
        or (owner and not (owner.founder and members == 1 and set(a.types) & set(owner.types)))
    ):
        return None
    a.shares, a.founder = True, owner is None
    a.group = owner.group if owner else f"group{i}"
    new = [] if owner else [f"ggml_gallocr_shared_buffers_t {a.group} = ggml_gallocr_shared_buffers_new();"]
    return [*new, f"ggml_{kind(a)}_set_shared_buffers({a.name}, {a.group});"]


def kind(a: Living) -> str:
    return "backend_sched" if a.sched else "gallocr"


def shrink(a: Living) -> list[str]:
    """A request, where the allocator has come to share."""
    if a.attached:
        call = "backend_sched_request_buffer_shrink" if a.sched else "gallocr_request_shrink"
        return [f"if ({' || '.join(a.attached)}) {{", f"    ggml_{call}({a.name});", "}"]
    if a.sched:
        return [f"ggml_backend_sched_request_shared_buffer_shrink({a.name});"]
    return [f"ggml_gallocr_shared_buffers_request_shrink({a.group});"]


def state(a: Living) -> str:
    """The expression for both readings."""
    return f"get_state({a.group if a.group and not a.sched else a.name})"


def flag(a: Living) -> str:
    """The helper that reads them."""
    return f"{'sched_' if a.sched else ''}{'group' if a.group else 'pair'}_state"
