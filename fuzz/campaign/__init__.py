"""Campaigns: checks that run all night on many cores, and lose nothing when they are killed.

work.py      one job, a pure function: a batch of traces, or a failing trace made small
features.py  what a run showed, as numbers: the corpus keeps traces that show something new
store.py     what is known so far, in SQLite: one transaction a job; corpus.py its kept traces
local.py     a pool of processes on this machine that do jobs
run.py       the loop: hands out jobs, stores what comes back, saves replay files
display.py   what is shown meanwhile
"""
