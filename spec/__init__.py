"""The contract as code.

clauses     every clause as an object; contract.py holds their words
resizable   R (and G1, G2, P12) as predicates of one step of a pair; step.py and history.py are their words
induction   the proof: invariants of the model, base and step
bounded     bounded checks from the start state
prover      `prove`: one row a clause; table.py prints them, words.py puts states in words
variants    models that are wrong on purpose, each refuted
placement   P as a judge of any planner's plan; lifetimes.py says what is alive when,
            meeting.py which tensors share bytes by then
"""
