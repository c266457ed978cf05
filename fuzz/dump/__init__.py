"""Plans of somebody else's run: what native/hook/gallocheck_hook.c wrote down, read and judged.

lines.py      the file's lines by schema
faults.py     what they say of each other fits
books.py      who is alive: types, buffers, allocators, and where each tensor was bound last
translate.py  a bound graph as spec/placement.py judges it
judge.py      goes through the lines and judges each
found.py      the findings, how often each clause was exercised, the plans
figures.py    what plans need, beside what none can do without
"""
