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
    """'96 B', '4 KiB', '1,500 B', '21.2 MiB'; 'no limit'. Exact up to 99,999 bytes."""
    if n == UNLIMITED:
        return "no limit"
    for size, name in _UNITS:
        if n >= size and n % size == 0:
            return f"{n // size} {name}"
        if n >= size and n > 99_999:
            return f"{n / size:.4g} {name}"
    return f"{n:,} B"


def exact(n: int) -> str:
    """'4 KiB (4,096 bytes)': as `amount`, and every byte where that is rounded or in another unit."""
    words = amount(n)
    return words if n == UNLIMITED or words.endswith(" B") else f"{words} ({n:,} bytes)"
