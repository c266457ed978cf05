"""Pairs that meet are found as by looking at all pairs, and quickly."""

from __future__ import annotations

import time

from gallocheck.model.records import Place, Tensor
from gallocheck.spec.lifetimes import FOREVER, Life
from gallocheck.spec.meeting import meetings, pairs_alive
from hypothesis import given
from hypothesis import strategies as st

SPANS = st.tuples(  # start, steps, offset, bytes, chunk
    st.integers(-1, 12), st.one_of(st.integers(0, 6), st.just(FOREVER)), st.integers(0, 70),
    st.integers(1, 40), st.integers(0, 1),
)  # fmt: skip


@given(st.lists(SPANS, max_size=24))
def test_as_by_looking_at_all_pairs(spans: list[tuple[int, int, int, int, int]]) -> None:
    roots = {
        i: Life(start, FOREVER if n == FOREVER else start + n, -1) for i, (start, n, *_) in enumerate(spans)
    }
    places = [Place(0, chunk, offset) for _, _, offset, _, chunk in spans]
    tensors = [Tensor(size) for _, _, _, size, _ in spans]

    def both_alive(a: int, b: int) -> bool:
        return roots[a].start <= roots[b].end and roots[b].start <= roots[a].end

    def share(a: int, b: int) -> bool:
        p, q = places[a], places[b]
        before = p.offset < q.offset + tensors[b].size and q.offset < p.offset + tensors[a].size
        return before and p.chunk == q.chunk

    order = sorted(roots, key=lambda i: (roots[i].start, i))
    pairs = [(a, b) for k, a in enumerate(order) for b in order[k + 1 :] if both_alive(a, b)]
    assert pairs_alive(list(roots.values())) == len(pairs)
    assert list(meetings(places, tensors, roots)) == [(a, b) for a, b in pairs if share(a, b)]


def test_a_large_plan_takes_no_quadratic_time() -> None:
    """All alive at once, side by side, among them one over which the rest is looked up: 30,000 in well under 10 s."""
    n = 30_000
    roots = {i: Life(i, FOREVER, -1) for i in range(n)}
    places = [Place(0, 0, 64 * i) for i in range(n)]
    tensors = [Tensor(1 << 20 if i == 0 else 64) for i in range(n)]
    began = time.monotonic()
    assert len(list(meetings(places, tensors, roots))) == (1 << 20) // 64 - 1
    assert time.monotonic() - began < 10
