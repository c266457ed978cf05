"""M1, and R over types that have parts on several devices: the machine of a pair with such types.

The rules are R's (resizable.py, where M1 is beside them); here are the sizes at which they are
proved of meta types.
"""

from __future__ import annotations

from dataclasses import replace

from .pair import MACHINE as PAIR
from .resizable import CHECKED, META

#: types, chunks, then the devices of each type as bits: a meta type over two devices beside a simple
#: type on one of them; two meta types over the same two devices
CONFIGS = ((2, 2, 0b01, 0b11), (2, 1, 0b11, 0b11))
MACHINE = replace(
    PAIR, name="meta", configs=CONFIGS, clauses=(*META, *CHECKED), sizes="types x chunks x devices"
)
