"""Modules of kernels for TPUs: Mosaic, the compiler of kernels that is part of XLA for TPUs, takes
them in a custom call.

A module has the kernel's function, on the indices in the grid and references, and one for each
index map. What kernels do with references stands here.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import lowering.kernel_values  # noqa: F401 -- whose rules kernels need
from lowering import rules
from lowering.builder import Block, in_avals
from lowering.kernels import INT, Kernel, held, is_float, kernel_rule, space_of, type_of, vector_of
from pyjx.core.avals import AbstractRef
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn

rule = partial(rules.rule, foreign=True)

# -- references ------------------------------------------------------------------------------------


class _Part:
    """A part of a reference, by the last indexer of several: where it begins, what is loaded, and
    the shape of the part."""

    def __init__(self, k: Kernel, ref: str, aval: AbstractRef, indexers: Sequence[Any],
                 integers: Sequence[str]) -> None:
        given = iter(integers)
        self.ref, self.aval = ref, aval
        for step in indexers[:-1]:
            self._look(k, step, given)
        last = indexers[-1] if indexers else tuple([(0, n, 1) for n in self.aval.shape])
        self._check(last)
        self.starts: list[Any] = [next(given) if e is None or e[0] is None else e[0] for e in last]
        self.sizes = [1 if e is None else e[1] for e in last]
        self.strides = [1 if e is None else e[2] for e in last]
        self.shape = [e[1] for e in last if e is not None]

    def _check(self, step: Any) -> None:
        if not isinstance(step, tuple):
            raise NotImplementedError(f"pallas_call for TPU: {step} of a reference has no form in "
                                      "a kernel. Read it, and change what was read.")

    def _look(self, k: Kernel, step: Any, given: Iterator[str]) -> None:
        """The reference to a part."""
        self._check(step)
        if any([e is not None and e[2] != 1 for e in step]):
            raise NotImplementedError("pallas_call for TPU: a part of a part of a reference has no "
                                      "strides in a kernel.")
        starts = [next(given) if e is None or e[0] is None else k.constant(e[0], INT) for e in step]
        cut = self.aval.with_shape(tuple([1 if e is None else e[1] for e in step]))
        self.ref = k.line(f"tpu.memref_slice {self.ref}[{', '.join(starts)}] : "
                          f"{type_of(self.aval)} -> {type_of(cut)}")
        seen = cut.with_shape(tuple([e[1] for e in step if e is not None]))
        if seen.shape != cut.shape:
            self.ref = k.line(f"tpu.memref_squeeze {self.ref} : {type_of(cut)} -> {type_of(seen)}")
        self.aval = seen

    def place(self, k: Kernel) -> str:
        return f"{self.ref}[{', '.join([k.index(i) for i in self.starts])}]"

    @property
    def in_scalars(self) -> bool:
        space = space_of(self.aval)
        if space not in ("vmem", "smem"):
            raise NotImplementedError(
                f"pallas_call for TPU: a reference in {space.upper()} is neither read nor written "
                "in a kernel. Copy it to or from scratch space in VMEM: pltpu.sync_copy.")
        return space == "smem"


def _load(k: Kernel, part: _Part) -> str:
    dtype, memref = held(part.aval.dtype), type_of(part.aval)
    if part.in_scalars:
        if part.shape:
            raise NotImplementedError("pallas_call for TPU: of a reference in SMEM scalars are "
                                      "read. Index it by integers alone.")
        x = k.line(f"memref.load {part.place(k)} : {memref}")
        return _as_bools(k, x, part)
    if not part.sizes:
        raise NotImplementedError("pallas_call for TPU: a reference without axes lies in SMEM. "
                                  "Give its BlockSpec memory_space=pltpu.SMEM, or give it axes.")
    whole = vector_of(part.sizes, dtype)
    if any([n != 1 for n in part.strides]):
        x = k.line(f"tpu.strided_load {part.place(k)} {{strides = array<i32: "
                   f"{', '.join(map(str, part.strides))}>}} : {memref}, {whole}")
    else:
        x = k.line(f"vector.load {part.place(k)} : {memref}, {whole}")
    return _as_bools(k, k.reshaped(x, dtype, part.sizes, part.shape), part)


def _as_bools(k: Kernel, x: str, part: _Part) -> str:
    """What a reference holds, of which bools are what is not 0."""
    dtype = held(part.aval.dtype)
    if dtype == part.aval.dtype:
        return x
    return k.with_number(part.shape, "cmpi ne,", x, 0, dtype)


def _store(k: Kernel, part: _Part, x: str) -> None:
    dtype, memref = held(part.aval.dtype), type_of(part.aval)
    if dtype != part.aval.dtype:
        x = k.number(x, part.shape)
    if part.in_scalars:
        k.raw(f"memref.store {x}, {part.place(k)} : {memref}")
        return
    x = k.reshaped(x, dtype, part.shape, part.sizes)
    whole = vector_of(part.sizes, dtype)
    if any([n != 1 for n in part.strides]):
        k.raw(f"tpu.strided_store {part.place(k)}, {x} {{strides = array<i32: "
              f"{', '.join(map(str, part.strides))}>}} : {memref}, {whole}")
    else:
        k.raw(f"tpu.vector_store {part.place(k)}, {x} {{strides = array<i32>}} : {memref}, "
              f"{whole},")


def _part_of(k: Kernel, eqn: JaxprEqn, ref: str, integers: Sequence[str]) -> _Part:
    aval: Any = eqn.invars[0].aval
    avals = [v.aval for v in eqn.invars[len(eqn.invars) - len(integers):]]
    return _Part(k, ref, aval, eqn.params["indexers"], list(map(k.int32, integers, avals)))


@kernel_rule("get")
def _get(k: Kernel, eqn: JaxprEqn, ref: str, *integers: str) -> str:
    return _load(k, _part_of(k, eqn, ref, integers))


@kernel_rule("swap")
def _swap(k: Kernel, eqn: JaxprEqn, ref: str, x: str, *integers: str) -> str:
    part = _part_of(k, eqn, ref, integers)
    old = _load(k, part) if eqn.outvars[0] in k.read else ""
    _store(k, part, x)
    return old


@kernel_rule("addupdate")
def _addupdate(k: Kernel, eqn: JaxprEqn, ref: str, x: str, *integers: str) -> list[str]:
    part = _part_of(k, eqn, ref, integers)
    aval = eqn.invars[1].aval
    wide = INT if not is_float(aval) and aval.dtype.itemsize < 4 else aval.dtype
    old, x = [k.converted(y, aval.dtype, wide, aval.shape) for y in (_load(k, part), x)]
    total = k.line(f"arith.{'addf' if is_float(aval) else 'addi'} {old}, {x} : "
                   f"{vector_of(aval.shape, wide)}")
    _store(k, part, k.converted(total, wide, aval.dtype, aval.shape))
    return []


@kernel_rule("new_ref")
def _new_ref(k: Kernel, eqn: JaxprEqn, x: str) -> str:
    aval: Any = eqn.outvars[0].aval
    if space_of(aval) == "semaphore_mem":
        if aval.kind == "barrier":
            return k.line(f"tpu.sem_barrier : {type_of(aval)}")
        return k.line(f"tpu.sem_alloc : {type_of(aval)}")
    ref = k.line(f"memref.alloca() : {type_of(aval)}")
    if aval.memory_space is None:  # else it is scratch space, whose first value nobody knows
        _store(k, _Part(k, ref, aval, (), ()), x)
    return ref


@kernel_rule("free_ref")
def _free_ref(k: Kernel, eqn: JaxprEqn, *_: str) -> list[str]:
    return []


def _parts(k: Kernel, eqn: JaxprEqn, operands: Sequence[str]
           ) -> tuple[list[tuple[str, str]], list[str]]:
    """The parts of references that an operation takes, as names and types, and the values that
    come behind them."""
    given = iter(zip(operands, eqn.invars, strict=True))
    found = []
    for steps in eqn.params["indexers"]:
        ref, v = next(given)
        integers = [k.int32(name, i.aval) for name, i in [
            next(given) for step in steps if isinstance(step, tuple)
            for e in step if e is None or e[0] is None]]
        aval: Any = v.aval
        part = _Part(k, ref, aval, [*steps, tuple([(0, n, 1) for n in _seen(aval, steps)])],
                     integers)
        found.append((part.ref, type_of(part.aval)))
    return found, [name for name, _ in given]


def _seen(aval: AbstractRef, steps: Sequence[Any]) -> tuple[int, ...]:
    """The shape of what the steps leave."""
    shape = aval.shape
    for step in steps:
        if isinstance(step, tuple):
            shape = tuple([e[1] for e in step if e is not None])
    return shape


@kernel_rule("dma_start", "dma_wait")
def _dma(k: Kernel, eqn: JaxprEqn, *operands: str) -> list[str]:
    (source, target, sem), _ = _parts(k, eqn, operands)
    if eqn.primitive.name == "dma_start":
        given = [f"{name} : {kind}" for name, kind in (source, target, sem)]
        k.raw("tpu.enqueue_dma source({}) target({}) target_semaphore({})".format(*given))
        return []
    names, types = zip(sem, source, target, strict=True)
    # The form that all versions of jaxlib have.
    k.raw(f'"tpu.wait_dma2"({", ".join(names)}) <{{operandSegmentSizes = array<i32: 1, 1, 1, 0, '
          f'0>}}> : ({", ".join(types)}) -> ()')
    return []


@kernel_rule("remote_dma_start")
def _remote_dma(k: Kernel, eqn: JaxprEqn, *operands: str) -> list[str]:
    refs, (device,) = _parts(k, eqn, operands)
    source, target, sent, came = [f"{name} : {kind}" for name, kind in refs]
    k.raw(f"tpu.enqueue_dma source({source}) target({target}) source_semaphore({sent}) "
          f"target_semaphore({came}) device_id({device})")
    return []


@kernel_rule("remote_signal")
def _remote_signal(k: Kernel, eqn: JaxprEqn, *operands: str) -> list[str]:
    ((name, kind),), (inc, device) = _parts(k, eqn, operands)
    k.raw(f"tpu.sem_signal {name}, {inc} device_id {device} : {kind}")
    return []


@kernel_rule("semaphore_signal", "semaphore_wait")
def _count(k: Kernel, eqn: JaxprEqn, *operands: str) -> list[str]:
    ((name, kind),), (value,) = _parts(k, eqn, operands)
    op = eqn.primitive.name.removeprefix("semaphore_")
    k.raw(f"tpu.sem_{op} {name}, {value} : {kind}")
    return []


@kernel_rule("semaphore_read")
def _read(k: Kernel, eqn: JaxprEqn, *operands: str) -> list[str]:
    ((name, kind),), _ = _parts(k, eqn, operands)
    return [k.line(f"tpu.sem_read {name} : {kind} -> i32")]


@kernel_rule("device_id")
def _device_id(k: Kernel, eqn: JaxprEqn) -> str:
    return k.line("tpu.device_id : i32")


@kernel_rule("prng_seed")
def _prng_seed(k: Kernel, eqn: JaxprEqn, *seeds: str) -> list[str]:
    types = ", ".join(["i32"] * len(seeds))
    k.raw(f'"tpu.prng_set_seed_32"({", ".join(seeds)}) : ({types}) -> ()')
    return []


@kernel_rule("prng_random_bits")
def _prng_random_bits(k: Kernel, eqn: JaxprEqn) -> str:
    return k.line(f'"tpu.prng_random_bits"() : () -> {type_of(eqn.outvars[0].aval)}')


@kernel_rule("multiple_of")
def _multiple_of(k: Kernel, eqn: JaxprEqn, x: str) -> str:
    for n in eqn.params["values"]:
        x = k.line(f"tpu.assume_multiple {x}, {n} : {type_of(eqn.outvars[0].aval)}")
    return x


# -- modules ---------------------------------------------------------------------------------------


class Window:
    """A block of an operand: the sizes that XLA brings in, the type that the kernel sees, and the
    program of the index map; without sizes it is the operand itself. With `padding`, of each axis
    before and behind, indices are those of elements."""

    def __init__(self, sizes: Sequence[int] | None, array: AbstractRef, seen: AbstractRef,
                 index_map: ClosedJaxpr, padding: Sequence[tuple[int, int]] | None) -> None:
        self.sizes, self.array, self.seen, self.index_map = sizes, array, seen, index_map
        self.padding = padding

    @property
    def given(self) -> AbstractRef:
        """The type of the argument of the kernel's function."""
        return self.array if self.sizes is None else self.seen.with_shape(tuple(self.sizes))


def _kind(w: Window) -> str:
    if w.padding is None:
        return ""
    sides = [list(side) for side in zip(*w.padding, strict=True)]
    return f", window_kind = #tpu.element_window<{sides[0]},{sides[1]}>"


def _function(name: str, types: Sequence[str], write: Callable[[list[str]], tuple[Kernel, str]],
              attributes: str = "") -> str:
    names = [f"%arg{i}" for i in range(len(types))]
    kernel, results = write(names)
    arguments = ", ".join([f"{n}: {t}" for n, t in zip(names, types, strict=True)])
    return "\n".join([f"  func.func @{name}({arguments}){results}{attributes} {{", *kernel.lines,
                      "  }"])


# What a size of a grid is that the call is given: the least integer of 64 bits.
_TRACED = -1 << 63


def module_text(kernel: ClosedJaxpr, name: str, grid: Sequence[int | None],
                fetched: Sequence[AbstractRef],
                windows: Sequence[Window], scratch: Sequence[AbstractRef], semantics: Sequence[str],
                expand: Callable[[JaxprEqn], ClosedJaxpr | None]) -> str:
    """The module of a kernel, whose program takes the traced sizes of the grid, None there, the
    indices in it, and the references."""
    given = [*fetched, *[w.given for w in windows], *scratch]
    types = ["i32"] * len(grid) + [type_of(a) for a in given]

    def body(names: list[str]) -> tuple[Kernel, str]:
        k = Kernel(expand)
        refs, first = names[len(grid):], len(fetched)
        for i, w in enumerate(windows, first):
            if w.given != w.seen:
                refs[i] = k.line(f"tpu.memref_squeeze {refs[i]} : {type_of(w.given)} -> "
                                 f"{type_of(w.seen)}")
        sizes = [k.line(f"tpu.iteration_bound {axis} : i32")
                 for axis, n in enumerate(grid) if n is None]
        k.program(kernel.jaxpr, kernel.consts, [*sizes, *names[:len(grid)], *refs])
        k.raw("return")
        return k, ""

    def index_map(w: Window) -> Callable[[list[str]], tuple[Kernel, str]]:
        def write(names: list[str]) -> tuple[Kernel, str]:
            k = Kernel(expand)
            outs = k.program(w.index_map.jaxpr, w.index_map.consts, names)
            every = ", ".join(["i32"] * len(outs))
            k.raw(f"return {', '.join(outs)} : {every}")
            return k, f" -> ({every})"

        return write

    attributes = [
        "dimension_semantics = "
        f"[{', '.join([f'#tpu.dimension_semantics<{s}>' for s in semantics])}]",
        f"scalar_prefetch = {len(fetched)} : i64", f"scratch_operands = {len(scratch)} : i64",
        "tpu.core_type = #tpu.core_type<tc>"]
    functions = []
    if grid:
        entries = []
        for i, w in enumerate(windows):
            if w.sizes is None:
                entries.append("{}")
                continue
            entries.append(f"{{transform_indices = @transform_{i}, window_bounds = "
                           f"array<i64: {', '.join(map(str, w.sizes))}>{_kind(w)}}}")
            functions.append(_function(
                f"transform_{i}", ["i32"] * len(grid) + [type_of(a) for a in fetched],
                index_map(w)))
        bounds = ", ".join([str(_TRACED if n is None else n) for n in grid])
        attributes += [f"iteration_bounds = array<i64: {bounds}>",
                       f"window_params = [{', '.join(entries)}]"]
    main = _function("main", types, body, f" attributes {{{', '.join(attributes)}}}")
    return "\n".join([f"module @{name} {{", main, *functions, "}"]) + "\n"


@rule("mosaic_call", platform="tpu")
def _mosaic_call(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    params = eqn.params
    config = {"custom_call_config": {
        "body": base64.b64encode(params["module"]()).decode(),
        "serialization_format": 1, "needs_layout_passes": True, **params["config"]}}
    avals, outs = in_avals(eqn), [v.aval for v in eqn.outvars]
    rows = [[tuple(range(a.ndim)) for a in each] for each in (avals, outs)]
    return b.custom_call("tpu_custom_call", operands, avals, outs, config=json.dumps(config),
                         aliases=params["aliases"], api_version=1, layouts=(rows[0], rows[1]),
                         has_side_effect=params["has_side_effect"], kernel=params["name"])
