"""Bytes for people."""

from __future__ import annotations

from ..model.records import UNLIMITED

_UNITS = (
    (1 << 60, "EiB"),
    (1 << 50, "PiB"),
    (1 << 40, "TiB"),
    (1 << 30, "GiB"),
    (1 << 20, "MiB"),
    (1 << 10, "KiB"),
)


def amount(n: int) -> str:
    """'96 B', '4 KiB', '1,500 B', '22,723 MiB', '120.6 KiB'; 'no limit'. Exact where five digits are enough."""
    if n == UNLIMITED:
        return "no limit"
    for size, name in _UNITS:
        if n >= size and n % size == 0 and n // size < 100_000:
            return f"{n // size:,} {name}"
    rounded = ((size, name) for size, name in _UNITS if n >= size and n > 99_999)
    size, name = next(rounded, (1, "B"))
    return f"{n:,} B" if size == 1 else f"{n / size:.4g} {name}"


def exact(n: int) -> str:
    """'4 KiB (4,096 bytes)': as `amount`, and every byte where that is rounded or in another unit."""
    words = amount(n)
    return words if n == UNLIMITED or words.endswith(" B") else f"{words} ({n:,} bytes)"
