"""Finding, shrinking and keeping failures.

draw        where choices come from: random.Random or Hypothesis
legal       what a legal trace is
setups      generation of devices and slot lists
graphs      generation of graphs, and of others with the same sizes
generate    generation of traces, by profile
strategies  the generators as Hypothesis strategies
simpler     single steps towards a simpler trace
shrink      a failing trace made small
wire        the shapes inside replay files
replay      replay files: saved, and loaded by schema
words       a trace in words
"""
