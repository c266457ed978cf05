"""Pictures and pages: the memory map of a trace, and the report of a check or a campaign.

memory.py      the memory map, operation by operation: frames
placed.py      a bound graph in its buffers: which tensors live, which bytes conflict
sharers.py     which allocators use the same buffers
svg.py         frames as one SVG text; plans.py: one plan, its tensors' lives as rectangles
characters.py  one frame in characters, for a terminal
"""
