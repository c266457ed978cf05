"""Thousands of traces in lockstep: the model over lanes, the subject through one call, every observation compared.

draw.py      what all lanes do: setup, graphs, the schedule, each lane's values
table.py     what planning says of the batch's graphs
session.py   the model of all lanes: which allocator is which role of which pair
compare.py   model beside subject, step by step; a lane as a trace
engine.py    batches one after the other; a lane that differs goes to the judge
"""
