"""The contract as tests of somebody else's tree:

    pytest --pyargs gallocheck.suite --gallocheck-source=PATH

plugin.py        options, marks, and what is said at the start and the end
setting.py       the subject and all else that every process of the session must know
expected.py      the file of expected failures that a project keeps
shares.py        the hunt, divided among the workers of pytest-xdist
test_clauses.py  one test an invariant
record.py        what was found, for `gallocheck report`
github.py        failures as GitHub shows them beside a pull request
"""
