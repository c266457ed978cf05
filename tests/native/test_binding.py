"""The binding: the header is read as it stands, records and structs agree, bad libraries get one sentence."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from gallocheck.model import records
from gallocheck.model.records import (
    BufferType,
    Cap,
    Context,
    Flag,
    Graph,
    Kind,
    Observation,
    Op,
    OpFlag,
    Place,
    Setup,
    Status,
    Tensor,
    Trouble,
)
from gallocheck.native import binding, header, layout
from gallocheck.native.header import SubjectError, ffi

from . import toys


def test_the_header_names_every_function() -> None:
    assert set(header.FUNCTIONS) == {
        "gc_abi", "gc_capabilities", "gc_describe", "gc_open", "gc_close", "gc_define", "gc_run",
        "gc_places", "gc_plant",
    }  # fmt: skip


ENUMS = [
    (Cap, "GC_CAP_{}", {}),
    (Flag, "GC_{}", {}),
    (Kind, "GC_{}", {}),
    (OpFlag, "GC_{}", {}),
    (Status, "GC_{}", {}),
    (Trouble, "GC_{}", {}),
    (records.Strategy, "GC_{}", {}),
    (records.PoolKind, "GC_{}", {}),
    (records.Memory, "GC_{}", {}),
    (records.Option, "GC_{}", {}),
    (records.Scale, "GC_{}", {}),
    (records.Shared, "GC_{}", {}),
]


@pytest.mark.parametrize(("enum", "pattern", "_"), ENUMS)
def test_records_have_the_header_s_values(enum: type, pattern: str, _: dict[str, str]) -> None:
    for one in enum:  # type: ignore[attr-defined]
        assert getattr(header.constants, pattern.format(one.name)) == one.value


def test_limits_are_the_header_s() -> None:
    for name in ("MAX_TYPES", "MAX_CHUNKS", "MAX_SLOTS", "MAX_CONFIGS", "MAX_ALLOCS", "MAX_SRC", "MAX_STREAMS",
                 "MAX_CONTEXTS", "MAX_LANES", "MAX_SERVER_SLOTS", "VALIDATED"):  # fmt: skip
        assert getattr(header.constants, f"GC_{name}") == getattr(records, name)
    assert len(Kind) == header.constants.GC_N_KINDS


@pytest.mark.parametrize(
    ("struct", "record", "only_in_c"),
    [
        ("gc_type", BufferType, {"reserved"}),
        ("gc_context", Context, set()),
        ("gc_tensor", Tensor, set()),
        ("gc_op", Op, {"reserved"}),
        ("gc_obs", Observation, set()),
        ("gc_place", Place, set()),
    ],
)
def test_structs_have_the_fields_of_the_records(struct: str, record: type, only_in_c: set[str]) -> None:
    in_c = {name for name, _ in ffi.typeof(struct).fields}
    assert in_c - only_in_c == {f.name for f in dataclasses.fields(record)}


def test_dtypes_have_the_layout_of_the_structs() -> None:
    for name, dtype in (
        ("gc_obs", binding.OBS_DTYPE),
        ("gc_op", binding.OP_DTYPE),
        ("gc_tensor", binding.TENSOR_DTYPE),
    ):
        assert dtype.itemsize == ffi.sizeof(name)
        for field, part in ffi.typeof(name).fields:
            assert dtype.fields[field][1] == part.offset
            assert dtype.fields[field][0].itemsize == ffi.sizeof(part.type)
    assert binding.OBS_DTYPE["asked"].shape == (records.MAX_TYPES, records.MAX_CHUNKS)


def test_every_field_of_an_operation_and_a_tensor_arrives() -> None:
    op = Op(Kind.COMPUTE, 1, 2, 3, 4, 5, OpFlag.ASYNC, 2**64 - 1)
    raw = np.frombuffer(layout.pack_op(op), binding.OP_DTYPE)[0]
    assert {f.name: int(raw[f.name]) for f in dataclasses.fields(Op)} == {
        f.name: int(getattr(op, f.name)) for f in dataclasses.fields(Op)
    }
    tensor = Tensor(2**63, (3, 1), Flag.INPLACE | Flag.OUTPUT, 7, 9, -1, 2**40, records.Scale.SCALE_INDEXER)
    raw = np.frombuffer(layout.pack_tensor(tensor), binding.TENSOR_DTYPE)[0]
    assert list(raw["src"]) == [3, 1, -1, -1]
    for name in ("size", "flags", "slot", "pad", "view_src", "view_offs", "scale"):
        assert int(raw[name]) == int(getattr(tensor, name))


def test_a_setup_arrives() -> None:
    setup = Setup((BufferType(8, 100, 64, 1000), BufferType(16)), ((0, 0), (0, 1, 0)))
    c = ffi.from_buffer("gc_setup *", layout.pack_setup(setup))
    assert (c.n_types, c.n_configs) == (2, 2)
    assert (c.types[0].alignment, c.types[0].max_size, c.types[0].granularity, c.types[0].capacity) == (
        8,
        100,
        64,
        1000,
    )
    assert c.types[1].capacity == 2**64 - 1
    assert list(c.n_slots) == [2, 3, 0, 0]
    assert list(c.slots[1])[:3] == [0, 1, 0]
    assert [c.contexts[k].config for k in range(records.MAX_CONTEXTS)] == [-1, -1]


def test_what_the_layers_are_set_up_with_arrives() -> None:
    context = Context(
        0, 2, records.Memory.HYBRID, records.Option.LIVE_CONTEXT, 2, 64, 16, 3, 32, 7
    )  # fmt: skip
    types = (BufferType(), BufferType(), BufferType(16, meta=0b11))
    setup = Setup(types, ((2,),), records.Strategy.COUNTED, records.PoolKind.VMM_POOL, 1 << 40, (context,))
    c = ffi.from_buffer("gc_setup *", layout.pack_setup(setup))
    assert (c.strategy, c.pool, c.pool_range, c.types[2].meta) == (1, 1, 1 << 40, 3)
    for f in dataclasses.fields(Context):
        assert getattr(c.contexts[0], f.name) == int(getattr(context, f.name)), f.name
    assert c.contexts[1].config == -1


def test_an_observation_arrives_cut_to_what_is_there() -> None:
    raw = np.zeros(1, binding.OBS_DTYPE)
    raw["status"], raw["trouble"], raw["bad_node"], raw["allocations"] = 2, 17, -1, 9
    raw["used"] = raw["owned"] = raw["pooled"] = [[1, 2, 3, 4, 5]]
    raw["fewer"], raw["busy"], raw["reason"], raw["released"] = [[62, 63]], 9, 5, 77
    raw["reported"] = [[5, 0, 6, 0, 0, 7]]
    raw["asked"][0, 1] = [8, 0, 9] + [0] * 13
    seen = layout.observation(raw.tobytes(), 2)
    assert seen.status is Status.STALE and seen.trouble == Trouble.BAD_SOURCE | Trouble.BAD_GUARD
    assert seen.used == seen.owned == seen.pooled == (1, 2)
    assert seen.reported == (5, 0, 6, 0, 0, 7)
    assert seen.asked == ((), (8, 0, 9))
    assert (seen.bad_node, seen.allocations) == (-1, 9)
    assert (seen.fewer, seen.busy, seen.reason, seen.released) == ((62, 63), 9, 5, 77)
    raw["asked"][0, 0] = range(1, 17)  # no trailing zero at all, and bytes that end in zeros
    raw["asked"][0, 1] = [256] + [0] * 15
    assert layout.observation(raw.tobytes(), 2).asked == (tuple(range(1, 17)), (256,))


def test_a_session_runs() -> None:
    library = binding.Library(toys.toy())
    assert library.capabilities == Cap.PLAN | Cap.RESIZABLE
    assert library.describe == "toy"
    with library.open(toys.SETUP) as session:
        assert session.define(Graph(())) == 0
        assert session.define(toys.PAIR_OF_TENSORS) == 1
        assert session.define(Graph((Tensor(13),))) == -1
        seen = session.run(
            [Op(Kind.NEW), Op(Kind.MEASURE, graph=1), Op(Kind.ALLOC, graph=1), Op(Kind.COMPUTE, 3)]
        )
        assert [s.status for s in seen] == [Status.DONE, Status.DONE, Status.DONE, Status.MISUSE]
        assert seen[1].measured[0] == 11 and seen[2].used == (11,)
        assert session.places(0, 2) == (Place(0, 0, 0), Place(0, 0, 5))
        assert session.places(1, 2) == ()
        assert session.run([]) == []
        raw = np.zeros(3, binding.OP_DTYPE)
        raw["kind"] = Kind.LOOK
        assert list(session.run_raw(raw)["generation"]) == [1, 1, 1]
        with pytest.raises(ValueError, match="OBS_DTYPE"):
            session.run_raw(raw, np.zeros(2, binding.OBS_DTYPE))
    assert session.close() == 0


BAD_LIBRARIES = [
    ("/nowhere/libtoy.so", "no subject library at /nowhere/libtoy.so: build it, or name another one."),
    (__file__, "cannot be loaded as a subject library"),
]


@pytest.mark.parametrize(("path", "words"), BAD_LIBRARIES)
def test_what_is_no_library_is_named(path: str, words: str) -> None:
    with pytest.raises(SubjectError) as caught:
        binding.Library(path)
    assert words in str(caught.value) and path in str(caught.value)
    assert caught.value.exit_code == 3 and "\n" not in str(caught.value)


def test_a_missing_function_is_named() -> None:
    with pytest.raises(SubjectError, match=r"lacks the function gc_places of gallocheck\.h: export it"):
        binding.Library(toys.toy("-DTOY_LACKS"))


def test_another_interface_version_is_named() -> None:
    with pytest.raises(
        SubjectError, match=r"has version 99 of the subject interface \(gc_abi\), this .* needs 2"
    ):
        binding.Library(toys.toy("-DTOY_ABI=99"))


def test_a_planted_defect_that_is_not_there_is_named() -> None:
    binding.Library(toys.toy(), defect=1)
    with pytest.raises(SubjectError, match="no planted defect 2"):
        binding.Library(toys.toy(), defect=2)


def test_a_setup_that_the_subject_does_not_take() -> None:
    with pytest.raises(SubjectError, match="does not open a session"):
        binding.Library(toys.toy()).open(Setup((), ()))


def test_a_status_that_the_header_does_not_know() -> None:
    with (
        binding.Library(toys.toy()).open(toys.SETUP) as session,
        pytest.raises(SubjectError, match="answered an operation with status 7"),
    ):
        session.run([Op(Kind.CAPACITY, value=toys.STATUS)])
