"""Source mutants of an allocator: does the check notice what is wrong with it?

lex.py reads C and C++ into tokens, operators.py and statements.py change them, sources.py says which files a
subject has, build.py compiles a changed file into a subject, trial.py checks it for a bounded time,
store.py keeps what came of it, run.py does them all, known.py lists those that nobody can tell apart.
"""
