"""For all tests."""

from __future__ import annotations

import signal

# A run that a script put into the background ignores Ctrl-C, and so would every program that it starts:
# the tests that press it need programs that listen.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
