"""The model to play with: step it, print it, draw it.

    play = Play(capacity=10_000, alignment=64)
    prompt, token = play.graph(4000, 2000), play.graph(400, 200)
    target = play.owner()
    draft = target.borrower()
    target.alloc(prompt)
    print(draft.reserve(token))
    print(play)
    play.draw("memory.svg")

In a notebook a Play shows itself as the memory map. What was played is a trace like any other
(`play.trace`): a subject's judge can run it, and a replay file can hold it.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import count
from pathlib import Path

from ..fuzz.legal import why_illegal
from ..fuzz.words import describe_observation, describe_op, describe_setup
from ..model.records import (
    UNLIMITED,
    BufferType,
    Graph,
    Kind,
    Observation,
    Op,
    Setup,
    Status,
    Tensor,
    Trace,
)
from ..model.stack import Stack
from .memory import frames, modelled
from .svg import over_time


@dataclass(frozen=True)
class Answer:
    """What one operation showed. True where it was done."""

    number: int
    words: str
    seen: Observation

    def __bool__(self) -> bool:
        return self.seen.status == Status.DONE

    def __str__(self) -> str:
        return f"{self.number:3d}. {self.words}: {describe_observation(self.seen)}"

    __repr__ = __str__


class Play:
    """A session of the model, of allocators on one buffer type, or on those of `types`, each listed once.

    `capacity`, `alignment`: bytes, of the one type. Raises ValueError, one sentence, where an operation,
    a graph or the setup makes no sense.
    """

    def __init__(
        self, capacity: int = UNLIMITED, alignment: int = 1, types: tuple[BufferType, ...] = ()
    ) -> None:
        types = types or (BufferType(alignment=alignment, capacity=capacity),)
        self.setup = Setup(types, (tuple(range(len(types))),))
        self.graphs: list[Graph] = []
        self.answers: list[Answer] = []
        self.ops: list[Op] = []
        self._numbers = count()
        self._stack = Stack(self.setup, self.graphs)
        self._check(self.trace)

    @property
    def trace(self) -> Trace:
        """All that was played."""
        return Trace(self.setup, tuple(self.graphs), tuple(self.ops))

    def graph(self, *tensors: int | Tensor) -> Graph:
        """A graph of these tensors. A number is the size, in bytes, of one that reads the one before it."""
        made = tuple(
            Tensor(t, src=(i - 1,) if i else ()) if isinstance(t, int) else t for i, t in enumerate(tensors)
        )
        self._check(Trace(self.setup, (*self.graphs, Graph(made)), tuple(self.ops)))
        self.graphs.append(Graph(made))
        return self.graphs[-1]

    def allocator(self) -> Player:
        """A plain allocator."""
        player = Player(self, next(self._numbers))
        self.step(Op(Kind.NEW, player.number))
        return player

    def owner(self) -> Player:
        """An allocator that others may borrow from."""
        player = self.allocator()
        player.own()
        return player

    def capacity(self, size: int, device: int = 0) -> Answer:
        """A device has so many bytes from now on."""
        return self.step(Op(Kind.CAPACITY, other=device, value=size))

    def step(self, op: Op) -> Answer:
        """Any operation of records.Op."""
        self._check(Trace(self.setup, tuple(self.graphs), (*self.ops, op)))
        self.ops.append(op)
        answer = Answer(len(self.ops) - 1, describe_op(op, self.trace), self._stack.step(op))
        self.answers.append(answer)
        return answer

    def svg(self) -> str:
        """The memory over time, as one SVG text."""
        return over_time(frames(self.trace, modelled(self.trace)))

    def draw(self, path: str | Path) -> None:
        """Writes that picture."""
        Path(path).write_text(self.svg())

    def __str__(self) -> str:
        return "\n".join([describe_setup(self.setup), *map(str, self.answers)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """For notebooks: the picture, and below it the words."""
        picture = self.svg() if self.ops else ""
        return f"{picture}<pre>{escape(str(self))}</pre>"

    def _check(self, trace: Trace) -> None:
        if fault := why_illegal(trace):
            raise ValueError(f"This cannot be played: {fault}.")


class Player:
    """One allocator of a Play. Each method is one operation; `fails`: every allocation of it fails."""

    def __init__(self, play: Play, number: int) -> None:
        self.play, self.number = play, number

    def own(self) -> Answer:
        return self._do(Kind.OWN)

    def borrower(self) -> Player:
        """A new allocator that borrows from this one."""
        other = self.play.allocator()
        other.borrow(self)
        return other

    def borrow(self, owner: Player) -> Answer:
        return self._do(Kind.BORROW, other=owner.number)

    def reserve(self, graph: Graph, fails: bool = False) -> Answer:
        return self._do(Kind.RESERVE, graph, fails)

    def measure(self, graph: Graph) -> Answer:
        return self._do(Kind.MEASURE, graph)

    def alloc(self, graph: Graph, fails: bool = False) -> Answer:
        return self._do(Kind.ALLOC, graph, fails)

    def compute(self) -> Answer:
        return self._do(Kind.COMPUTE)

    def request_shrink(self) -> Answer:
        return self._do(Kind.SHRINK)

    def look(self) -> Answer:
        return self._do(Kind.LOOK)

    def free(self) -> Answer:
        return self._do(Kind.FREE)

    def _do(self, kind: Kind, graph: Graph | None = None, fails: bool = False, other: int = 0) -> Answer:
        if graph is not None and graph not in self.play.graphs:
            raise ValueError("This graph is not the play's: make it with play.graph(...).")
        number = self.play.graphs.index(graph) if graph is not None else 0
        bits = (1 << len(self.play.setup.types)) - 1 if fails else 0
        return self.play.step(Op(kind, self.number, other, number, fail_types=bits))
