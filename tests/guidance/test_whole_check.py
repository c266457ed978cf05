"""The whole check under Hypothesis, on the bundled allocator: what a campaign found or kept comes first.

HypoFuzz drives this file too; docs/campaigns.md.
"""

from __future__ import annotations

from gallocheck.fuzz.examples import whole_check, with_kept

test_whole_check = with_kept(whole_check)
