"""What a function costs an accelerator at least: operations, bytes of memory, bytes of links.

Operations that XLA fuses with others cost no traffic of their own: those are counted as `unfused`
alone. Products and convolutions count in both.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core.avals import AbstractRef, ShapedArray, nbytes
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from pyjx.core.meshes import AbstractMesh, Mesh
from pyjx.core.primitive import Primitive
from pyjx.core.records import by_names
from pyjx.experimental.custom_partitioning import custom_partitioning_p
from pyjx.lax.collectives import psum_invariant_p
from pyjx.lax.exchanges import reduce_scatter_p
from pyjx.lax.ragged import ragged_dot_general_p
from pyjx.lazy import directory
from pyjx.parallel.mapping import shard_map
from pyjx.runtime.abstract import ShapeDtypeStruct, make_jaxpr
from pyjx.runtime.costs import Run, constants_of, cost_of, runs_of
from pyjx.transforms.vjp import vjp as vjp_of
from pyjx.tree_util import tree_map

__all__ = ["RooflineResult", "RooflineRuleContext", "RooflineShape", "register_roofline",
           "register_standard_roofline", "roofline", "roofline_and_grad", "rooflines"]


@dataclasses.dataclass(frozen=True)
class RooflineShape:
    """The shape and dtype of a value."""

    shape: tuple[int, ...]
    dtype: Any

    __reduce__ = by_names

    @classmethod
    def from_aval(cls, aval: ShapedArray | AbstractRef) -> RooflineShape:
        return cls(aval.shape, aval.dtype)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """The bytes of its elements."""
        return int(self.size * self.dtype.itemsize)

    @classmethod
    def total_bytes(cls, avals: Sequence[Any]) -> int:
        """The bytes of several values."""
        return sum([cls.from_aval(a).bytes for a in avals])


@dataclasses.dataclass(frozen=True, kw_only=True)
class RooflineRuleContext:
    """What a rule knows of the equation."""

    name_stack: Any
    primitive: Primitive
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    jaxpr_eqn_ctx: Any
    mesh: Any
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool


def _joined(x: dict[str, int], y: dict[str, int]) -> dict[str, int]:
    return {k: x.get(k, 0) + y.get(k, 0) for k in {**x, **y}}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RooflineResult:
    """What a function costs. Two of them are added up.

    Attributes:
      flops, unfused_flops: operations of products and convolutions, and all of them.
      ici_bytes, ici_latency: bytes over the links along each axis of the mesh, and how many steps.
      hbm_bytes, unfused_hbm_bytes: read and written by products, and by all operations.
      peak_hbm_bytes: of all values that are alive at once.
    """

    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: dict[str, int] = dataclasses.field(default_factory=dict)
    ici_latency: dict[str, int] = dataclasses.field(default_factory=dict)
    hbm_bytes: int = 0
    peak_hbm_bytes: int = 0
    unfused_hbm_bytes: int = 0

    __reduce__ = by_names

    @classmethod
    def zeros(cls) -> RooflineResult:
        """Nothing."""
        return cls()

    def __add__(self, other: RooflineResult) -> RooflineResult:
        return RooflineResult(
            flops=self.flops + other.flops, unfused_flops=self.unfused_flops + other.unfused_flops,
            ici_bytes=_joined(self.ici_bytes, other.ici_bytes),
            ici_latency=_joined(self.ici_latency, other.ici_latency),
            hbm_bytes=self.hbm_bytes + other.hbm_bytes,
            peak_hbm_bytes=max(self.peak_hbm_bytes, other.peak_hbm_bytes),
            unfused_hbm_bytes=self.unfused_hbm_bytes + other.unfused_hbm_bytes)

    def times(self, n: int) -> RooflineResult:
        """The same, so often."""
        return RooflineResult(flops=n * self.flops, unfused_flops=n * self.unfused_flops,
                              ici_bytes={k: n * v for k, v in self.ici_bytes.items()},
                              ici_latency={k: n * v for k, v in self.ici_latency.items()},
                              hbm_bytes=n * self.hbm_bytes, peak_hbm_bytes=self.peak_hbm_bytes,
                              unfused_hbm_bytes=n * self.unfused_hbm_bytes)


Rule = Callable[..., RooflineResult]
_Known = dict[tuple[ClosedJaxpr | Jaxpr, Any], RooflineResult]  # of programs over meshes
rooflines: dict[Primitive, Rule] = {}  # of libraries, and for what is not counted otherwise


def register_roofline(prim: Primitive) -> Callable[[Rule], Rule]:
    """A decorator: `rule(ctx, *args, **params)` says what an operation costs, in the place of what
    is known of it. `args` are the shapes of its operands."""
    def register(rule: Rule) -> Rule:
        rooflines[prim] = rule
        return rule

    return register


def register_standard_roofline(prim: Primitive) -> None:
    """Say that an operation costs nothing."""
    rooflines[prim] = lambda ctx, *args, **params: RooflineResult.zeros()


def _of_equation(eqn: JaxprEqn, constants: Mapping[Var, Any], mesh: Mesh | AbstractMesh | None,
                 pins: tuple[bool, bool], known: _Known) -> RooflineResult:
    rule = rooflines.get(eqn.primitive)
    if rule is not None:
        ctx = RooflineRuleContext(name_stack=eqn.source_info.name_stack, primitive=eqn.primitive,
                                  avals_in=[v.aval for v in eqn.invars],
                                  avals_out=[v.aval for v in eqn.outvars], jaxpr_eqn_ctx=eqn.ctx,
                                  mesh=mesh, pin_lhs_in_vmem=pins[0], pin_rhs_in_vmem=pins[1])
        return rule(ctx, *map(RooflineShape.from_aval, ctx.avals_in), **eqn.params)
    # which no transformation looks into
    own = [Run([eqn.params["call"]], 1)] if eqn.primitive is custom_partitioning_p else []
    runs, devices = own or runs_of(eqn, constants), eqn.primitive.holder.devices(eqn.params)
    if runs:
        inner, total = eqn.params.get("mesh", mesh), RooflineResult.zeros()
        for programs, times in runs:  # on all devices
            dearest = max([_of_program(p, inner, pins, known) for p in programs],
                          key=lambda r: (r.unfused_flops, r.unfused_hbm_bytes))
            total += dearest.times(1 if times is None else int(times) // devices)
        return total
    if eqn.primitive in _LINKS:
        return _of_collective(eqn, mesh)
    return _of_operation(eqn, pins)


def _of_operation(eqn: JaxprEqn, pins: tuple[bool, bool]) -> RooflineResult:
    cost = cost_of(eqn)
    flops = int(cost.flops + cost.transcendentals)
    moved = int(cost.bytes)
    if not (eqn.primitive.contracts or eqn.primitive is ragged_dot_general_p):
        return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=moved)
    pinned = sum([nbytes(v.aval) for v, pin in zip(eqn.invars, pins, strict=False) if pin])
    return RooflineResult(flops=flops, unfused_flops=flops, hbm_bytes=moved - pinned,
                          unfused_hbm_bytes=moved)


def _of_collective(eqn: JaxprEqn, mesh: Mesh | AbstractMesh | None) -> RooflineResult:
    """The bytes over the links along each axis, and the steps: those of a torus of the axes."""
    axes = eqn.params.get("axes", eqn.params.get("axis_name"))
    names = [a for a in (axes if isinstance(axes, tuple) else (axes,)) if isinstance(a, str)]
    sizes = [dict(mesh.shape).get(a, 1) for a in names] if mesh is not None else []
    if math.prod(sizes) == 1:
        none = dict.fromkeys(names, 0)
        return RooflineResult(ici_bytes=none, ici_latency=none)
    n = RooflineShape.total_bytes([v.aval for v in eqn.invars])
    moved, steps = _LINKS[eqn.primitive](n, sizes, eqn)
    order = names[::-1]  # the neighbours' axis first
    return RooflineResult(ici_bytes=dict.fromkeys(order, moved),
                          ici_latency=dict.fromkeys(order, steps))


def _gathered(n: int, sizes: list[int], eqn: JaxprEqn | None = None) -> tuple[int, int]:
    """Rings along all axes, each for its part of the bytes."""
    return n // len(sizes) * (math.prod(sizes) - 1), len(sizes) * max(sizes)


def _scattered(n: int, sizes: list[int], eqn: JaxprEqn) -> tuple[int, int]:
    return _gathered(n // math.prod(sizes), sizes)


def _summed(n: int, sizes: list[int], eqn: JaxprEqn) -> tuple[int, int]:
    """Scattered and gathered again."""
    moved, steps = _scattered(n, sizes, eqn)
    return 2 * moved, 2 * steps


def _largest(n: int, sizes: list[int], eqn: JaxprEqn) -> tuple[int, int]:
    """One number a device, as JAX counts: largest and smallest ones are taken of scalars."""
    return _gathered(sum([v.aval.dtype.itemsize for v in eqn.invars]), sizes)


def _exchanged(n: int, sizes: list[int], eqn: JaxprEqn) -> tuple[int, int]:
    """Half of all crosses the middle of the torus, of which the shortest axis has the fewest
    links; from three devices on a ring has two ways."""
    shortest = min(sizes)
    links = shortest ** (len(sizes) - 1) * (2 if shortest > 2 else 1)
    return n * math.prod(sizes) // (2 * links), sum(sizes) // 2


def _permuted(n: int, sizes: list[int], eqn: JaxprEqn) -> tuple[int, int]:
    """Each message goes along one axis after the other, the shorter way; the link that most of them
    take decides, and the longest way."""
    loads: Counter[Any] = Counter()
    longest = 0
    for source, target in eqn.params["perm"]:
        at, end = (list(map(int, np.unravel_index(i, sizes))) for i in (source, target))
        hops = 0
        for axis, size in enumerate(sizes):
            ahead = (end[axis] - at[axis]) % size
            step = 1 if 2 * ahead <= size else -1
            for _ in range(min(ahead, size - ahead)):
                here = tuple(at)
                at[axis] = (at[axis] + step) % size
                loads[frozenset((here, tuple(at)))] += 1
                hops += 1
        longest = max(longest, hops)
    return n * max(loads.values(), default=0), longest


# (bytes of the operands on a device, sizes of the axes, equation) -> (bytes over a link, steps)
_LINKS: dict[Primitive, Callable[[int, list[int], JaxprEqn], tuple[int, int]]] = {
    lax.psum_p: _summed, psum_invariant_p: _summed, lax.pmax_p: _largest, lax.pmin_p: _largest,
    lax.all_gather_p: _gathered, reduce_scatter_p: _scattered, lax.all_to_all_p: _exchanged,
    lax.ppermute_p: _permuted}


def _of_program(program: ClosedJaxpr | Jaxpr, mesh: Mesh | AbstractMesh | None,
                pins: tuple[bool, bool], known: _Known, outside: bool = False) -> RooflineResult:
    """`outside` of a `shard_map` values are those of all devices, and no device holds them."""
    if (total := known.get((program, mesh))) is None:
        total = RooflineResult(peak_hbm_bytes=0 if outside else _peak(program.jaxpr))
        constants = constants_of(program)
        for eqn in program.eqns:
            total = total + _of_equation(eqn, constants, mesh, pins, known)
        known[program, mesh] = total
    return total


def _peak(jaxpr: Jaxpr) -> int:
    """The most bytes of values that are alive at once; what is read the last time gives its memory
    to results."""
    alive = peak = sum([nbytes(v.aval) for v in jaxpr.all_invars])
    for eqn, ends in zip(jaxpr.eqns, jaxpr.last_uses(), strict=True):
        unread = {*eqn.outvars} & {*ends}
        alive += sum([nbytes(v.aval) for v in eqn.outvars if v not in unread])
        alive -= sum([nbytes(v.aval) for v in ends if v not in unread])
        peak = max(peak, alive)
    return peak


def roofline(f: Callable[..., Any], mesh: Mesh | AbstractMesh | None = None, in_specs: Any = None,
             out_specs: Any = None, *, pin_lhs_in_vmem: bool = False, pin_rhs_in_vmem: bool = False,
             vjp: bool = False, print_jaxpr: bool = False
            ) -> Callable[..., tuple[Any, RooflineResult]]:
    """A function that gives the types of what `f` gives, and what it costs; nothing is computed.

    Args:
      mesh, in_specs, out_specs: those of a `shard_map` of `f`: the cost is that of one device.
      pin_lhs_in_vmem, pin_rhs_in_vmem: whether operands of products are in fast memory already.
      vjp: count the program of the function and its reverse derivative.
      print_jaxpr: print what is counted.

    >>> import pyjx as jax
    >>> from pyjx.experimental.roofline import roofline
    >>> x, y = jax.numpy.ones((8, 16)), jax.numpy.ones((16, 4))
    >>> out, cost = roofline(lambda x, y: jax.numpy.tanh(x @ y))(x, y)
    >>> out.shape, cost.flops, cost.hbm_bytes
    ((8, 4), 1024, 896)
    """
    fun = f if mesh is None else shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs,
                                           check_vma=False)

    def with_gradients(*args: Any) -> Any:
        out, pull = vjp_of(fun, *args)
        return out, pull(out)

    def counted(*args: Any) -> tuple[Any, RooflineResult]:
        closed: ClosedJaxpr
        closed, types = make_jaxpr(with_gradients if vjp else fun, return_shape=True)(*args)
        if print_jaxpr:
            print(closed)
        types = types[0] if vjp else types
        out = tree_map(lambda a: ShapeDtypeStruct(a.shape, a.dtype), types)
        return out, _of_program(closed, mesh, (pin_lhs_in_vmem, pin_rhs_in_vmem), {},
                                outside=mesh is not None)

    return counted


def roofline_and_grad(f: Callable[..., Any], mesh: Mesh | AbstractMesh | None, in_specs: Any,
                      out_specs: Any, *, pin_lhs_in_vmem: bool = False,
                      pin_rhs_in_vmem: bool = False, print_jaxpr: bool = False
                     ) -> Callable[..., tuple[Any, RooflineResult, RooflineResult]]:
    """As `roofline`: the types of results, the cost of `f`, and that of it with its reverse
    derivative."""
    def counted(*args: Any) -> tuple[Any, RooflineResult, RooflineResult]:
        options = {"pin_lhs_in_vmem": pin_lhs_in_vmem, "pin_rhs_in_vmem": pin_rhs_in_vmem,
                   "print_jaxpr": print_jaxpr}
        out, forward = roofline(f, mesh, in_specs, out_specs, **options)(*args)
        return out, forward, roofline(f, mesh, in_specs, out_specs, vjp=True, **options)(*args)[1]

    return counted


__dir__ = directory(__name__, __all__)
