"""The executable reference model. It imports nothing but the standard library.

records     what is described, asked and seen: setups, graphs, operations, observations
domain      the small language that every rule is written in, over ints
lanes       the same language over NumPy arrays, one lane a trace
terms       the same language over Z3 terms
resizable   R: owner and borrower, requirement by requirement
planner     P: where each tensor goes (best fit)
oracle      what every tensor's memory must hold
session     a whole session: allocators, plans, pairs and bound graphs
"""
