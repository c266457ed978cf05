"""Small traces of contexts by hand."""

from __future__ import annotations

from gallocheck.fuzz.judge import Judge
from gallocheck.model.records import (
    VALIDATED,
    BufferType,
    Context,
    Flag,
    Graph,
    Kind,
    Memory,
    Op,
    OpFlag,
    Option,
    PoolKind,
    Scale,
    Setup,
    Strategy,
    Tensor,
    Trace,
)
from gallocheck.native.library import library_path

BOTH = Option.PHASE_AWARE | Option.LIVE_CONTEXT
NONE = OpFlag(0)
#: an input by tokens, something of the cache, an output by tokens
TEMPLATE = Graph((
    Tensor(4, (), Flag.LEAF | Flag.INPUT, scale=Scale.SCALE_TOKENS),
    Tensor(1, (0,), scale=Scale.SCALE_ATTENTION),
    Tensor(2, (1,), scale=Scale.SCALE_WINDOW),
    Tensor(3, (2,), scale=Scale.SCALE_INDEXER),
    Tensor(4, (1, 2, 3), Flag.OUTPUT, scale=Scale.SCALE_TOKENS),
))  # fmt: skip


def setup(
    options: Option = BOTH,
    draft: Option | None = None,
    memory: Memory = Memory.KV,
    strategy: Strategy = Strategy.PAIR,
    pool: PoolKind = PoolKind.NO_POOL,
    capacity: int = 2**64 - 1,
) -> Setup:
    """Cells 64, generation 2, micro-batch 128; a target of two lanes, a draft of one."""
    target = Context(0, 0, memory, options, 2, 64, 8, 2, 128)
    other = Context(0, 0, memory, options if draft is None else draft, 1, 64, 8, 2, 128)
    return Setup((BufferType(16, capacity=capacity),), ((0,),), strategy, pool, 1 << 20, (target, other))


def open_(n: int) -> Op:
    return Op(Kind.CTX_OPEN, n)


def decode(n: int, tokens: int, used: int, flags: OpFlag = NONE, fail_nth: int = 0) -> Op:
    return Op(Kind.CTX_DECODE, n, used, flags=flags, value=tokens, fail_nth=fail_nth)


def attach(fail_nth: int = 0) -> Op:
    return Op(Kind.CTX_ATTACH, 1, value=VALIDATED, fail_nth=fail_nth)


START = (open_(0), open_(1), attach())
#: the draft has a graph bound, the target replaces the buffers, the draft uses its graph again
REPLACED = (*START, decode(1, 1, 1), decode(0, 128, 64))


def trace(*ops: Op, made: Setup | None = None) -> Trace:
    return Trace(made or setup(), (TEMPLATE,), ops)


def bundled() -> Judge:
    return Judge(str(library_path("bundled")))
