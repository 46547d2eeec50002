"""What a function costs an accelerator at least: operations, bytes of memory, bytes of links.

Operations that XLA fuses with others cost no traffic of their own: those are counted as `unfused`
alone. Products and convolutions count in both.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

from pyjx import lax
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, default_context, jaxprs_in_params
from pyjx.core.primitive import Primitive
from pyjx.lax.collectives import psum_invariant_p
from pyjx.lax.exchanges import reduce_scatter_p
from pyjx.lax.ragged import ragged_dot_general_p
from pyjx.lazy import directory
from pyjx.parallel.mapping import shard_map
from pyjx.runtime.abstract import ShapeDtypeStruct, make_jaxpr
from pyjx.runtime.costs import bytes_of, cost_of
from pyjx.transforms.vjp import vjp as vjp_of
from pyjx.tree_util import tree_map

__all__ = ["RooflineResult", "RooflineRuleContext", "RooflineShape", "register_roofline",
           "register_standard_roofline", "roofline", "roofline_and_grad", "rooflines"]
__dir__ = directory(__name__, __all__)


@dataclasses.dataclass(frozen=True)
class RooflineShape:
    """The shape and dtype of a value."""

    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def from_aval(cls, aval: Any) -> RooflineShape:
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
        return RooflineResult(
            flops=n * self.flops, unfused_flops=n * self.unfused_flops,
            ici_bytes={k: n * v for k, v in self.ici_bytes.items()},
            ici_latency={k: n * v for k, v in self.ici_latency.items()},
            hbm_bytes=n * self.hbm_bytes, peak_hbm_bytes=self.peak_hbm_bytes,
            unfused_hbm_bytes=n * self.unfused_hbm_bytes)


Rule = Callable[..., RooflineResult]
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


# One operation, though they hold the program that they combine values by.
_COMBINING = (lax.reduce_p, lax.reduce_window_p, lax.scatter_p, lax.scatter_add_p,
              lax.scatter_sub_p, lax.scatter_mul_p, lax.scatter_min_p, lax.scatter_max_p)
# How often the bytes of the larger side of a collective go over the links, along n devices.
_LINKS = {lax.psum_p: 2, psum_invariant_p: 2, lax.pmax_p: 2, lax.pmin_p: 2, lax.all_gather_p: 1,
          reduce_scatter_p: 1, lax.all_to_all_p: 1, lax.ppermute_p: 1}


def _of_equation(eqn: JaxprEqn, mesh: Any, pins: tuple[bool, bool]) -> RooflineResult:
    rule = rooflines.get(eqn.primitive)
    if rule is not None:
        ctx = RooflineRuleContext(
            name_stack=eqn.source_info.name_stack, primitive=eqn.primitive,
            avals_in=[v.aval for v in eqn.invars], avals_out=[v.aval for v in eqn.outvars],
            jaxpr_eqn_ctx=default_context, mesh=mesh, pin_lhs_in_vmem=pins[0],
            pin_rhs_in_vmem=pins[1])
        return rule(ctx, *map(RooflineShape.from_aval, ctx.avals_in), **eqn.params)
    programs = list(jaxprs_in_params(eqn.params))
    if programs and eqn.primitive not in _COMBINING:
        inner = [_of_program(p, eqn.params.get("mesh", mesh), pins) for p in programs]
        if eqn.primitive is lax.cond_p:
            return max(inner, key=lambda r: (r.unfused_flops, r.unfused_hbm_bytes))
        total = sum(inner, RooflineResult.zeros())
        return total.times(int(eqn.params.get("length", 1)))
    if eqn.primitive in _LINKS:
        return _of_collective(eqn, mesh)
    return _of_operation(eqn, pins)


def _of_operation(eqn: JaxprEqn, pins: tuple[bool, bool]) -> RooflineResult:
    cost = cost_of(eqn)
    flops = int(cost.flops + cost.transcendentals)
    moved = int(cost.bytes)
    if not (eqn.primitive.contracts or eqn.primitive is ragged_dot_general_p):
        return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=moved)
    pinned = sum([int(bytes_of(v.aval)) for v, pin in zip(eqn.invars, pins, strict=False) if pin])
    return RooflineResult(flops=flops, unfused_flops=flops, hbm_bytes=moved - pinned,
                          unfused_hbm_bytes=moved)


def _of_collective(eqn: JaxprEqn, mesh: Any) -> RooflineResult:
    axes = eqn.params.get("axes", eqn.params.get("axis_name"))
    names = [a for a in (axes if isinstance(axes, tuple) else (axes,)) if isinstance(a, str)]
    moved = max([sum([int(bytes_of(v.aval)) for v in side]) for side in (eqn.invars, eqn.outvars)])
    sizes = {} if mesh is None else dict(mesh.shape)
    steps = {a: _LINKS[eqn.primitive] * (sizes.get(a, 1) - 1) for a in names}
    return RooflineResult(
        ici_bytes={a: moved * n // sizes.get(a, 1) for a, n in steps.items()}, ici_latency=steps,
        unfused_hbm_bytes=sum([int(bytes_of(v.aval)) for v in (*eqn.invars, *eqn.outvars)]))


def _of_program(jaxpr: Jaxpr, mesh: Any, pins: tuple[bool, bool]) -> RooflineResult:
    total = RooflineResult(peak_hbm_bytes=_peak(jaxpr))
    for eqn in jaxpr.eqns:
        total = total + _of_equation(eqn, mesh, pins)
    return total


def _peak(jaxpr: Jaxpr) -> int:
    """The most bytes of values that are alive at once; what is read the last time gives its memory
    to results."""
    last = {v: len(jaxpr.eqns) for v in jaxpr.outvars if isinstance(v, Var)}
    for i in range(len(jaxpr.eqns) - 1, -1, -1):
        for v in jaxpr.eqns[i].invars:
            if isinstance(v, Var):
                last.setdefault(v, i)
    alive = {v: int(bytes_of(v.aval)) for v in jaxpr.all_invars}
    peak = sum(alive.values())
    for i, eqn in enumerate(jaxpr.eqns):
        alive = {v: n for v, n in alive.items() if last.get(v, -1) > i}
        alive.update({v: int(bytes_of(v.aval)) for v in eqn.outvars if v in last})
        peak = max(peak, sum(alive.values()))
    return peak


def roofline(f: Callable[..., Any], mesh: Any = None, in_specs: Any = None, out_specs: Any = None,
             *, pin_lhs_in_vmem: bool = False, pin_rhs_in_vmem: bool = False, vjp: bool = False,
             print_jaxpr: bool = False) -> Callable[..., tuple[Any, RooflineResult]]:
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
        return out, _of_program(closed.jaxpr, mesh, (pin_lhs_in_vmem, pin_rhs_in_vmem))

    return counted


def roofline_and_grad(f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any, *,
                      pin_lhs_in_vmem: bool = False, pin_rhs_in_vmem: bool = False,
                      print_jaxpr: bool = False
                      ) -> Callable[..., tuple[Any, RooflineResult, RooflineResult]]:
    """As `roofline`: the types of results, the cost of `f`, and that of it with its reverse
    derivative."""
    def counted(*args: Any) -> tuple[Any, RooflineResult, RooflineResult]:
        options = {"pin_lhs_in_vmem": pin_lhs_in_vmem, "pin_rhs_in_vmem": pin_rhs_in_vmem,
                   "print_jaxpr": print_jaxpr}
        out, forward = roofline(f, mesh, in_specs, out_specs, **options)(*args)
        return out, forward, roofline(f, mesh, in_specs, out_specs, vjp=True, **options)(*args)[1]

    return counted
