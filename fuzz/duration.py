"""Durations as people write them."""

from __future__ import annotations

import re

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


class BadDuration(ValueError):
    """A duration that is none; one sentence; exit code 2."""


def seconds(text: str) -> float:
    """'30s', '5m', '1.5h' or '30' in seconds. Raises BadDuration."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip())
    if not match or float(match[1]) <= 0:
        raise BadDuration(f"The time {text!r} makes no sense; write it as 30s, 5m or 1h.")
    return float(match[1]) * UNITS[match[2]]
