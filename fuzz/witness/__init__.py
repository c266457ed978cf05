"""Witnesses: for each branch of the model, and each part of a clause, the shortest trace that takes it.

    for witness in witnesses():
        witness.trace, witness.ways, witness.parts

Z3 found them (spec/witness.py), as walks of the machines that are proved; `python -m gallocheck.fuzz.witness`
finds them anew. Kept as data in fuzz/witnesses/, a file for each search.
"""

from .kept import Unreached, Witness, for_clause, for_part, unreached, witnesses

__all__ = ["Unreached", "Witness", "for_clause", "for_part", "unreached", "witnesses"]
