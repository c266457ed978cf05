"""Where witnesses are looked for: the machines, at which sizes, and how their walks become traces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...model.records import Kind, Memory, PoolKind, Strategy
from ...model.workspace import Frame
from ...spec import beside, capture, counted, meta, pair, pool, scheduler, server, waiting, workspace
from ...spec.machine import Config, Machine
from ...spec.witness import Goal, Prefix, Scene, Way
from . import captures, contexts, pools, two


@dataclass(frozen=True)
class Stage:
    """A scene, and the files whose branches are its own."""

    name: str
    scene: Scene
    files: tuple[str, ...]

    def wants(self, goal: Goal) -> bool:
        return not isinstance(goal, Way) or goal.site.file in self.files


def covers(made: Any, goal: Goal) -> bool:
    """Of a rule that acts the statuses say enough; a branch must be taken."""
    return not isinstance(goal, Way) or goal in made.ways


def scene(m: Machine, config: Config, depth: int, real: Any, accept: Any) -> Scene:
    return Scene(m, config, depth, ((),), real, partial(accept, m), covers)


def of_two(name: str, m: Machine, config: Config, depth: int, sort: two.Sort, *files: str) -> Stage:
    prefixes = ((), *(p for p in m.prefixes if p))
    real, accept = partial(two.real, sort), partial(two.accept, sort, m)
    return Stage(name, Scene(m, config, depth, prefixes, real, accept, covers), files)


def of_pools(name: str, config: Config, depth: int, *prefixes: Prefix) -> Stage:
    m = pool.MACHINE
    scene = Scene(m, config, depth, prefixes or ((),), pools.real, partial(pools.accept, m), covers)
    return Stage(name, scene, ("pool.py",))


def _kept_all() -> Prefix:
    """As many blocks come and go as a legacy pool keeps, and one more is out."""
    unit, ops = 4096, list[tuple[int, Any]]()
    ops += [(Kind.POOL_ALLOC, {**_NONE, "size": unit}) for _ in range(pools.KEPT + 1)]
    ops += [(Kind.POOL_FREE, {**_NONE, "size": unit, "address": n + 1}) for n in range(pools.KEPT)]
    return tuple(ops)


def of_policy(name: str, m: Machine, depth: int, *prefixes: Prefix) -> Stage:
    accept = partial(contexts.policy_accept, m)
    scene = Scene(m, (), depth, prefixes or ((),), contexts.policy_real, accept, covers)
    return Stage(name, scene, ("workspace.py",))


def _late(model: Any) -> tuple[Any, list[Any]]:
    """A context of two lanes that reserves for what is in use."""
    frame = Frame(int(Memory.KV), True, True, True, 8, 8, 64, 64)
    return workspace.shape(model)._replace(frame=frame), []


_LESS = replace(workspace.MACHINE, begin=_late)
_NONE = {"pool": 0, "inject": False, "fail_nth": 0, "device": 0, "value": 0, "beside": False}
PAIR, COUNTED = two.Sort(), two.Sort(Strategy.COUNTED)
SCHED = two.Sort(sched=True)
RESIZABLE = ("resizable.py", "pair.py", "device_memory.py")


def stages() -> list[Stage]:
    """In the order in which they are searched: what an earlier one reached is not looked for again."""
    contexts_, server_, captures_ = waiting.MACHINE, server.MACHINE, capture.MACHINE
    return [
        of_two("resizable", pair.MACHINE, (2, 1), 7, PAIR, *RESIZABLE),
        of_two("resizable-chunks", pair.MACHINE, (1, 2), 5, PAIR, *RESIZABLE),
        of_two("meta", meta.MACHINE, meta.CONFIGS[0], 6, PAIR),
        of_two("scheduler", scheduler.MACHINE, (1, 1), 7, SCHED, "scheduler.py", *RESIZABLE),
        of_two("counted", counted.MACHINE, (2, 1), 6, COUNTED, "counted.py", *RESIZABLE),
        of_two("beside", beside.MACHINE, (2, 1), 6, COUNTED),
        of_pools("pools", (int(PoolKind.VMM_POOL), 0, 2, 2, 4096, 2 << 20), 4),
        of_pools("pools-legacy", (int(PoolKind.LEGACY_POOL), 2, 2, 1, 4096), 4),
        of_pools("pools-full", (int(PoolKind.LEGACY_POOL), pools.KEPT, 1, 1, 4096), 35, _kept_all()),
        Stage("captures", scene(captures_, (3,), 6, captures.real, captures.accept), ("capture.py",)),
        of_policy("policy", workspace.MACHINE, 4),
        of_policy("policy-late", _LESS, 67, contexts.less(1), contexts.less(64)),
        Stage(
            "contexts",
            scene(contexts_, (), 7, contexts.real, contexts.accept),
            ("waiting.py", "workspace.py"),
        ),
        Stage("server", scene(server_, (), 5, contexts.server_real, contexts.server_accept), ("server.py",)),
    ]
