"""How values lie along the axes of meshes, as Shardy's text: names and sizes, no devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lowering.rules import rule
from lowering.types import quoted, tensor_type
from pyjx.core.avals import AbstractRef, ShapedArray
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.meshes import AbstractMesh, Mesh
from pyjx.core.records import Record
from pyjx.core.specs import PartitionSpec

if TYPE_CHECKING:
    from lowering.builder import Block
    from lowering.module import Function


Texts = Sequence[str | None]


class Partitioning(Record):
    """How a program is spread over devices.

    A sharding here is what has a `mesh` of named axes and a `spec`, the `PartitionSpec` along
    them; None is left to XLA.

    Attributes:
      parts: into how many parts, one for each device.
      in_shardings, out_shardings: those of the program's arguments and results; empty for None.
      const_shardings: those of its constants, which are copied to all devices where it is None.
      kinds: the memories of arguments and of results, where these are not the devices' own.
      layouts: XLA's names of the layouts of arguments and of results, where these are not the
        usual ones.
      manual: for a program of one device the mesh and its axes, which have names in it.
      mesh: the mesh that it is spread over.
    """

    parts: int
    in_shardings: Sequence[Any] = ()
    out_shardings: Sequence[Any] = ()
    const_shardings: Sequence[Any] = ()
    kinds: tuple[Texts, Texts] = ((), ())
    layouts: tuple[Texts, Texts] = ((), ())
    manual: tuple[Any, frozenset[Any]] | None = None
    mesh: Any = None

    @property
    def is_spread(self) -> bool:
        """Whether values lie along a mesh, which may be one of one device."""
        return self.parts > 1 or self.mesh is not None

    def lie_alike(self, argument: int, result: int) -> bool:
        """Whether an argument and a result, which is to have its memory, are known to lie alike.

        Raises:
          ValueError: XLA is to choose the layout of one of them, and not that of the other.
        """
        given, wanted = [layouts[i] if layouts else None for layouts, i in
                         zip(self.layouts, (argument, result), strict=True)]
        for one, other, what in ((given, wanted, "output"), (wanted, given, "input")):
            if one == "auto" and other is None:
                raise ValueError(
                    f"Input layout being donated was {given} while output layout was {wanted}. Did "
                    f"you mean to set the **{what} layout** to **Layout.AUTO**? The result is to "
                    "have the memory of the argument, so XLA can choose only for both.")
        if self.in_shardings and (self.in_shardings[argument] is None
                                  or self.in_shardings[argument] != self.out_shardings[result]):
            return False
        return all([(ins[argument] if ins else None) == (outs[result] if outs else None)
                    for ins, outs in (self.kinds, self.layouts)])


ONE = Partitioning(1)


class Meshes:
    """The meshes that a module declares, by the names and sizes of their axes."""

    __slots__ = ("_groups", "_names", "_single")

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._groups = 0
        self._single: list[int] = []

    def device(self, index: int) -> str:
        """The symbol of the mesh that is one of the program's devices alone, by its place."""
        if index not in self._single:
            self._single.append(index)
        return f"device_{index}"

    def fresh_group(self) -> int:
        """The number of a group of values that are to lie alike."""
        self._groups += 1
        return self._groups - 1

    def name(self, mesh: Any) -> str:
        """The symbol of a mesh."""
        axes = mesh.shape_tuple
        found = self._names.get(axes)
        if found is None:
            n = len(self._names)
            found = self._names[axes] = f"mesh_{n - 1}" if n else "mesh"
        return found

    @property
    def first(self) -> str | None:
        """The symbol of the first mesh, if there is one."""
        return next(iter(self._names.values()), None)

    @property
    def first_axes(self) -> tuple[tuple[Any, int], ...] | None:
        """The names and sizes of the axes of the first mesh, if there is one."""
        return next(iter(self._names), None)

    def text(self) -> str:
        """The declarations."""
        lines = [
            f"  sdy.mesh @{name} = <[{', '.join([f'{quoted(str(a))}={k}' for a, k in axes])}]>\n"
            for axes, name in self._names.items()]
        lines += [f"  sdy.mesh @{self.device(i)} = <[], device_ids=[{i}]>\n" for i in self._single]
        return "".join(lines)


def sharding_text(meshes: Meshes, sharding: Any, ndim: int, free: Any = ()) -> str:
    """Shardy's spelling of a sharding of values of this rank, such as `<@mesh, [{"x"}, {}]>`; the
    dimensions `free` may be cut along more axes."""
    return spec_text(meshes, sharding.mesh, sharding.spec, ndim, free)


def spec_text(meshes: Meshes, mesh: Mesh | AbstractMesh, spec: Any, ndim: int, free: Any = ()
              ) -> str:
    """`sharding_text` of a spec along a mesh."""
    entries = [*spec, *[None] * (ndim - len(spec))]
    dims = ", ".join([_opened(_dimension(e)) if i in free else _dimension(e)
                      for i, e in enumerate(entries)])
    sums = f", unreduced={axes_text(mesh, spec.unreduced)}" if spec.unreduced else ""
    return f"<@{meshes.name(mesh)}, [{dims}]{sums}>"


def _dimension(entry: Any) -> str:
    if entry is PartitionSpec.UNCONSTRAINED:
        return "{?}"
    axes = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
    return f"{{{', '.join([quoted(str(a)) for a in axes])}}}"


def _opened(dim: str) -> str:
    return "{?}" if dim in ("{}", "{?}") else f"{dim[:-1]}, ?}}"


def axes_text(mesh: Mesh | AbstractMesh, names: Any) -> str:
    """A set of axes of a mesh, such as `{"x", "y"}`."""
    return f"{{{', '.join([quoted(str(a)) for a in mesh.axis_names if a in names])}}}"


def attribute(meshes: Meshes, sharding: Any, aval: ShapedArray | AbstractRef) -> str:
    """The attribute of an argument or a result that says how it lies."""
    return f"sdy.sharding = #sdy.sharding{sharding_text(meshes, sharding, aval.ndim)}"


_FACTORS = "ijklmnopqrstuvwxyz"


def batch_rule(in_avals: Sequence[Any], out_avals: Sequence[Any], batch_axes: int) -> str:
    """The attribute of a call that maps over the leading axes: these may be cut, the same way in
    all operands and results; no other."""
    sizes: list[int] = []

    def factor(size: int) -> str:
        sizes.append(size)
        return _factor(len(sizes) - 1)

    batch = [factor(n) for n in in_avals[0].shape[:batch_axes]]
    given, made = [", ".join([
        f"[{', '.join([*batch[:a.ndim], *[factor(n) for n in a.shape[batch_axes:]]])}]"
        for a in avals]) for avals in (in_avals, out_avals)]
    table = ", ".join([f"{_factor(i)}={n}" for i, n in enumerate(sizes)])
    return f"sdy.sharding_rule = #sdy.op_sharding_rule<({given})->({made}) {{{table}}}, custom>"


def _factor(i: int) -> str:
    """Shardy's name of factor number `i`."""
    last = len(_FACTORS) - 1
    return _FACTORS[i] if i <= last else f"z_{i - last}"


def annotate(main: Function, avals: tuple[Sequence[Any], Sequence[Any]],
             shardings: tuple[Sequence[Any], Sequence[Any]], partitioning: Partitioning) -> None:
    """Say how the arguments and results of the main function lie, and in which memories."""
    module = main.block.module
    for words, types, given, kinds, layouts in zip(
            (main.param_attributes, main.result_attributes), avals, shardings,
            partitioning.kinds, partitioning.layouts, strict=True):
        for i, sharding in enumerate(given if partitioning.is_spread else ()):
            if sharding is not None:
                words[i].append(attribute(module.meshes, sharding, types[i]))
        for name, texts in (("memory_kind", kinds), ("layout_mode", layouts)):
            for i, text in enumerate(texts):
                if text is not None:
                    words[i].append(f"mhlo.{name} = {quoted(text)}")


def with_token(partitioning: Partitioning) -> Partitioning:
    """That of a program which takes and gives a token first."""
    if partitioning is ONE:
        return ONE

    def with_first(values: Sequence[Any]) -> Sequence[Any]:
        return (None, *values) if values else ()

    p = partitioning
    return p._replace(in_shardings=with_first(p.in_shardings),
                      out_shardings=with_first(p.out_shardings),
                      kinds=(with_first(p.kinds[0]), with_first(p.kinds[1])),
                      layouts=(with_first(p.layouts[0]), with_first(p.layouts[1])))


def whole_along(b: Block, x: str, aval: ShapedArray | AbstractRef, axes: Sequence[int],
                apart: bool = False) -> str:
    """A value that is not cut along these axes, for operations that XLA cannot do part by part. Set
    `apart`, the value that it is made of stays cut, which Shardy would have whole for all its uses.
    """
    mesh = b.module.meshes.first
    if b.module.partitions == 1 or mesh is None:
        return x
    if apart and not b.is_argument(x):
        x = b.line(f"stablehlo.optimization_barrier {x} : {tensor_type(aval)}")
    dims = ", ".join(["{}" if i in axes else "{?}" for i in range(aval.ndim)])
    return b.line(f"sdy.sharding_constraint {x} <@{mesh}, [{dims}]> : {tensor_type(aval)}")


def cut_again(b: Block, out: str, x: str, aval: ShapedArray | AbstractRef, axes: Sequence[int]
             ) -> str:
    """A result that was made of `x`, a value of the same shape, whole along these axes: it is cut
    as that is, whatever the compiler chooses for it, but not while it is made."""
    whole = whole_along(b, out, aval, axes)
    if whole is not out:
        out = whole_along(b, whole, aval, ())
        lying_alike(b, [x, out], [aval, aval])
    return out


def lying_as(b: Block, x: str, aval: Any, sharding: Any, free: Any = ()) -> str:
    """A value that is to lie as a sharding says; the compiler chooses for `free` dimensions."""
    text = sharding_text(b.module.meshes, sharding, aval.ndim, free)
    return b.line(f"sdy.sharding_constraint {x} {text} : {tensor_type(aval)}")


def constrained(b: Block, outs: Sequence[str], avals: Sequence[Any], shardings: Sequence[Any]
                ) -> list[str]:
    """The results, with a constraint where open sums are to be closed: Shardy wants an operation
    that says so."""
    return [lying_as(b, x, a, s)
            if s is not None and b.is_argument(x) and not s.spec.unreduced else x
            for x, a, s in zip(outs, avals, shardings or [None] * len(outs), strict=True)]


def placed_in_memory(b: Block, x: str, aval: ShapedArray | AbstractRef, kind: str) -> str:
    """A value that is to be in this memory of its devices."""
    kept = tensor_type(aval)
    return b.line(
        f"stablehlo.custom_call @annotate_device_placement({x}) {{has_side_effect = true, "
        f"mhlo.frontend_attributes = {{_xla_buffer_placement = {quoted(kind)}}}}} : ({kept}) -> "
        f"{kept}")


@rule("device_put")
def _device_put(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    """Constraints where the target spans a mesh or is another memory; else nothing."""
    out = []
    for x, atom, target in zip(operands, eqn.invars, eqn.params["devices"], strict=True):
        if b.module.spread and hasattr(target, "spec"):
            x = lying_as(b, x, atom.aval, target)
        kind = getattr(target, "memory_kind", None)
        if kind is not None and b.module.platform != "cpu":  # which has one memory
            x = placed_in_memory(b, x, atom.aval, kind)
        out.append(x)
    return out


@rule("layout_constraint")
def _laid_out(b: Block, eqn: JaxprEqn, x: str) -> str:
    aval = eqn.invars[0].aval
    order = [eqn.params["layout"].major_to_minor]
    return b.custom_call("LayoutConstraint", [x], [aval], [aval], layouts=[order, order])[0]


@rule("shard_alike")
def _shard_alike(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    lying_alike(b, operands, [v.aval for v in eqn.invars])
    return operands


def lying_alike(b: Block, values: Sequence[str], avals: Sequence[Any]) -> None:
    """Say that values are to lie alike."""
    if b.module.spread:
        group = b.module.meshes.fresh_group()
        for x, aval in zip(values, avals, strict=True):
            b.raw(f"sdy.sharding_group {x} group_id={group} : {tensor_type(aval)}")


@rule("sharding_constraint")
def _sharding_constraint(b: Block, eqn: JaxprEqn, x: str) -> str:
    out = _constraint(b, eqn, x, eqn.params["sharding"], eqn.params["unconstrained_dims"])
    return out if eqn.params["layout"] is None else _laid_out(b, eqn, out)


@rule("reshard")
def _reshard(b: Block, eqn: JaxprEqn, x: str) -> str:
    sharding = eqn.params["dst_sharding"]
    free = range(eqn.invars[0].aval.ndim) if sharding.mesh.auto_axes else ()
    return _constraint(b, eqn, x, sharding, free)  # the compiler may cut along Auto axes, too


def _constraint(b: Block, eqn: JaxprEqn, x: str, sharding: Any, free: Any) -> str:
    if not b.module.spread or not hasattr(sharding, "spec"):
        return x
    return lying_as(b, x, eqn.invars[0].aval, sharding, free)
