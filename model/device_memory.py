"""What the devices give and take back: the part of a pair's model that asks them. R4, R9 and M1; bytes."""

from __future__ import annotations

from typing import Any

from .domain import Domain, Tree, Value
from .pair import Devices, RoleOp, State, put, simple


class DeviceMemory:
    """`types` buffer types of `chunks` chunks each, over domain `d`.

    `devices[t]`: the devices that a buffer of type t has a part on, all parts of one size (M1); as many
    devices as types. None: every type is a simple one, on the device with its own index.
    """

    def __init__(self, d: Domain | type[Any], types: int, chunks: int, devices: Devices | None) -> None:
        self.d: Any = d
        self.types, self.chunks = range(types), range(chunks)
        self.devices: Devices = devices or simple(types)
        self.empty = (0,) * chunks

    def real(self, s: State, t: int, chunks: Tree) -> Tree:
        """What the device gives for chunks asked for, bytes by chunk."""
        return tuple(self.d.roundup(x, s.gran[t]) for x in chunks)

    def make(self, s: State, op: RoleOp, t: int, want: Tree, tried: Value) -> tuple[Tree, Value, Value]:
        """Ask each device for its part of each chunk, chunk by chunk (M1): (bytes in use, failed, tried).

        Where one part fails, all that was got for the entry is given back.
        """
        d = self.d
        used, fail = s.used, False
        for need, real in zip(want, self.real(s, t, want), strict=True):
            for k in self.devices[t]:
                asks = d.all(need > 0, d.inv(fail))
                tried = d.ite(asks, tried + 1, tried)
                full = used[k] + real > s.cap[k]
                bad = d.all(asks, d.any(op.inject[k], tried == op.fail_nth, full))
                used = put(used, k, d.ite(d.all(asks, d.inv(bad)), used[k] + real, used[k]))
                fail = d.any(fail, bad)
        return d.ite(fail, s.used, used), fail, tried

    def given_back(self, s: State, used: Tree, t: int, chunks: Tree) -> Tree:
        """Bytes in use by device, once chunks of type t are freed on each of its devices."""
        for k in self.devices[t]:
            used = put(used, k, used[k] - sum(self.real(s, t, chunks)))
        return used
